"""streamsql in a Python program: python examples/python_api.py

The session runs in this process, in a temporary workspace. streamsql.connect('DIR') keeps it in a folder, and
attaches to `streamsql serve -w DIR` where that runs.
"""

from pathlib import Path

import streamsql

DATA = Path(__file__).parent / "data" / "interactions"


def main() -> None:
    with streamsql.connect() as con:
        con.sql(
            f"""
            CREATE STREAM actions (user_id INT, video_id INT, event STRING, event_time TIMESTAMP)
              USING csv OPTIONS (path '{DATA}', header 'true');
            CREATE LIVE TABLE by_event AS SELECT event, count(*) AS n FROM actions GROUP BY event;
            AWAIT QUERY by_event IDLE;
            """
        )
        con.sql("SELECT * FROM by_event WHERE n > ? ORDER BY event", [1]).show()

        table = con.table("by_event")
        print(table.arrow().num_rows, "rows, as of micro-batch", table.batch)

        for changes in con.watch("by_event"):  # goes on until its query ends
            print(changes.batch, sorted(changes.changes)[0])
            break

        print(con.queries()[0].status, con.queries()[0].account.read)
        try:
            con.sql("SELECT * FROM by_evnt")
        except streamsql.Error as error:
            print(error.code, error.place, error.hint)


if __name__ == "__main__":
    main()
