select identity, width, promoted_at, probe from semantic_models order by promoted_at desc, identity limit 1
