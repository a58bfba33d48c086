-- On a database that was embedded before semantic_models existed, the commonest stamp that is known is the target.
select semantic_embedded_model as identity
from jobs
where semantic_embedded_model is not null
group by semantic_embedded_model
order by count(*) desc, semantic_embedded_model
