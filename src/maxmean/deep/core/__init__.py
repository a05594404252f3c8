"""How an agent acts and learns. Nothing here knows an environment: the drivers, ``device`` and ``host``, have one each."""
