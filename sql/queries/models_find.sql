select identity, width, promoted_at, probe from semantic_models where identity = %(identity)s
