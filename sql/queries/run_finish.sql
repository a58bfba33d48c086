update semantic_runs set finished_at = now() where run_id = %(run)s
