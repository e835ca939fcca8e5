"""The command ``followup`` as a program of its own, which PyInstaller makes one file of."""

from followup.cli import main

if __name__ == "__main__":
    main()
