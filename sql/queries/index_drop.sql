drop index concurrently if exists public.{name}
