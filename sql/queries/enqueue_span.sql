-- The ids that an enqueue in parts goes through.
select coalesce(min(id), 0) as low, coalesce(max(id), -1) + 1 as high from jobs
