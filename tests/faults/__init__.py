"""The adversary: file operations that fail, and files that no program of ours would write.

``injector.py`` fails the Nth file operation; ``scenarios.py`` says what is written, and what must hold afterwards;
``readers.py`` makes bad files for every reader. The tests here run a bounded part of both, ``python -m tests.faults
--minutes N`` (make torture) goes on for as long as it is told.
"""
