"""``cardleague bench``: what the program does in a second, and where the time goes.

Room: deploy. May import: every room. One module per group of figures; ``suite`` runs them and
``document`` writes them down. Nothing here is timed by a test: a test runs all of it in a small
form and looks at the shape of what comes out.

Rates of one core are counted against the processor time of the process, with the wall clock beside
them, so that a busy machine shows and does not decide. Figures that wait for other processes or
for a disk are counted against the wall clock.
"""
