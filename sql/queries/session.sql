-- Once a connection. LIMIT and the optional month must reach the planner as constants: a generic claim plan
-- costs thirty times as much. The time-outs end what a killed client left behind.
select
    set_config('plan_cache_mode', 'force_custom_plan', false) as plans,
    set_config('idle_in_transaction_session_timeout', '60s', false) as idle,
    set_config('lock_timeout', '20s', false) as locks
