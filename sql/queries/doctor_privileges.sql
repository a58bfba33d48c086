-- What the current role lacks of the rights that a run needs.
select privilege || ' on ' || name as lacking
from (
    values
        ('select', 'jobs'),
        ('select', 'semantic_outbox'), ('insert', 'semantic_outbox'), ('update', 'semantic_outbox'),
        ('delete', 'semantic_outbox'),
        ('select', 'job_semantic_chunks'), ('insert', 'job_semantic_chunks'), ('update', 'job_semantic_chunks'),
        ('delete', 'job_semantic_chunks'),
        ('select', 'search_outbox'), ('insert', 'search_outbox'),
        ('select', 'semantic_models'), ('insert', 'semantic_models'), ('update', 'semantic_models'),
        ('select', 'semantic_runs'), ('insert', 'semantic_runs'), ('update', 'semantic_runs')
) as needed (privilege, name)
where not has_table_privilege(to_regclass(name), privilege)
union all
select 'update (' || name || ') on jobs'
from (
    values ('semantic_embedded_model'), ('semantic_embedded_hash'), ('semantic_embedding'), ('similar_computed_at')
) as written (name)
where not has_column_privilege(to_regclass('jobs'), name, 'update')
