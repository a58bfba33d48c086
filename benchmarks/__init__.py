"""What the project promises about scale, measured: each figure is a ratio to a yardstick of the same run.

    python -m benchmarks                    everything at full size, about half an hour
    python -m benchmarks --small            a smoke run of everything in a minute or two
    python -m benchmarks --only claim       one part; `--help` has the names
    python -m benchmarks --size entries=200000 --only claim

Every part works on a PostgreSQL of its own in a temporary folder (the extra `local`). The yardsticks are in
`yardsticks.py`: a raw COPY BINARY, the plain serial loop, and the statements that the product avoids.
"""
