alter index public.{old} rename to {new}
