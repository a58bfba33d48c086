-- Where the next slice ends; null = there is none.
select max(id) as upto
from (select id from jobs where id > %(after)s order by id limit %(limit)s) as slice
