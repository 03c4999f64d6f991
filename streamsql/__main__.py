import sys

from streamsql.cli import main

sys.exit(main())
