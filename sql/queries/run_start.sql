insert into semantic_runs (run_id, target_model) values (%(run)s, %(model)s)
on conflict (run_id) do nothing
