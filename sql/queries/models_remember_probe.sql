update semantic_models set probe = %(probe)s::real[] where identity = %(identity)s and probe is null
