/// The daemons that deliver as a gateway, so that two gateways with one name are noticed.
enum FleetRuns {
    static let tables = #"""
        CREATE TABLE gattherd.run (
            gateway int NOT NULL REFERENCES gattherd.gateway, run text NOT NULL CHECK (length(run) <= 64),
            since timestamptz NOT NULL DEFAULT now(), seen timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (gateway, run)
        ) WITH (fillfactor = 50);
        """#

    static let sql = #"""
        -- Records that a daemon delivers as the caller. Returns the reason if it may not: another daemon of this name was
        -- there first. On one machine that is a restart, so the older one has 45 s to end. A daemon on another machine
        -- is a copy and is refused at once; the name of a run begins with that of the machine, if it is known. A refused
        -- daemon has an infinite `since` until all others are gone.
        CREATE OR REPLACE FUNCTION gattherd.attend(caller_run text) RETURNS text
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
        DECLARE
            caller int := gattherd.caller();
            mine gattherd.run;
            older timestamptz;
        BEGIN
            DELETE FROM gattherd.run r WHERE r.gateway = caller AND r.seen < now() - interval '1 day';
            INSERT INTO gattherd.run AS r (gateway, run) VALUES (caller, caller_run)
            ON CONFLICT ON CONSTRAINT run_pkey DO UPDATE SET seen = now() RETURNING r.* INTO mine;
            SELECT min(r.since) INTO older FROM gattherd.run r
            WHERE r.gateway = caller AND r.run <> caller_run AND r.since <> 'infinity'
                AND r.seen BETWEEN now() - interval '3 minutes' AND now() + interval '1 minute'
                AND (mine.since = 'infinity' OR (r.since, r.run) < (mine.since, mine.run) AND (
                    r.seen > mine.since + interval '45 seconds'
                    OR strpos(r.run, '-') > 1 AND strpos(mine.run, '-') > 1
                        AND split_part(r.run, '-', 1) <> split_part(mine.run, '-', 1)));
            IF (older IS NULL) = (mine.since = 'infinity') THEN
                UPDATE gattherd.run r SET since = CASE WHEN older IS NULL THEN now() ELSE 'infinity' END
                WHERE r.gateway = caller AND r.run = caller_run;
            END IF;
            IF older IS NULL THEN RETURN NULL; END IF;
            RETURN format('another gateway with the name "%s" is connected, since %s',
                (SELECT g.name FROM gattherd.gateway g WHERE g.id = caller),
                to_char(older AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'));
        END $$;
        """#
}
