/// The tables of the central database.
enum FleetTables {
    static let tables = #"""
        CREATE TABLE gattherd.version (n int NOT NULL);
        CREATE TABLE gattherd.gateway (
            id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, role name NOT NULL UNIQUE,
            version text, last_seen timestamptz, head bigint, clock_offset double precision,
            errors bigint NOT NULL DEFAULT 0
        ) WITH (fillfactor = 50);
        CREATE TABLE gattherd.device (
            gateway int NOT NULL REFERENCES gattherd.gateway, device text NOT NULL, address text, name text,
            profiles text NOT NULL, first_seen bigint, last_seen bigint, PRIMARY KEY (gateway, device)
        ) WITH (fillfactor = 50);
        CREATE INDEX ON gattherd.device (device);
        CREATE TABLE gattherd.journal (
            id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, gateway int NOT NULL REFERENCES gattherd.gateway,
            epoch text NOT NULL, cursor bigint NOT NULL DEFAULT 0, since timestamptz NOT NULL DEFAULT now()
        ) WITH (fillfactor = 50);
        CREATE TABLE gattherd.epoch (
            gateway int NOT NULL REFERENCES gattherd.gateway, epoch text NOT NULL CHECK (epoch ~ '^[0-9a-f]{32}$'),
            journal int NOT NULL REFERENCES gattherd.journal, PRIMARY KEY (gateway, epoch)
        );
        CREATE TABLE gattherd.gap (
            journal int NOT NULL REFERENCES gattherd.journal, after bigint NOT NULL, through bigint NOT NULL,
            reason text NOT NULL, found timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (journal, through)
        );
        CREATE TABLE gattherd.quantity (
            id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, gateway int NOT NULL REFERENCES gattherd.gateway,
            device text NOT NULL, stream text NOT NULL, metric text NOT NULL, unit text,
            UNIQUE NULLS NOT DISTINCT (gateway, device, stream, metric, unit)
        );
        CREATE TABLE gattherd.air (
            id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, device text NOT NULL, profile text NOT NULL,
            stream text NOT NULL, UNIQUE (device, profile, stream)
        );
        CREATE TABLE gattherd.metric_series (
            id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, gateway int NOT NULL REFERENCES gattherd.gateway,
            device text NOT NULL, profile text NOT NULL, stream text NOT NULL, metric text NOT NULL, unit text,
            kind text NOT NULL, source text NOT NULL, quantity int NOT NULL REFERENCES gattherd.quantity,
            first_ts bigint NOT NULL, air int REFERENCES gattherd.air,
            UNIQUE NULLS NOT DISTINCT (gateway, device, stream, metric, profile, source, kind, unit)
        );
        CREATE INDEX series_of_quantity ON gattherd.metric_series (quantity);
        -- Rows that are far from the time of their arrival have partitions of their own: a new partition has all rows
        -- of the default partition read.
        CREATE TABLE gattherd.sample (
            ts bigint NOT NULL, seq bigint NOT NULL, value double precision, journal int NOT NULL,
            series int NOT NULL, element int, whole bigint, label text, far boolean NOT NULL DEFAULT false
        ) PARTITION BY LIST (far);
        CREATE TABLE gattherd.sample_near PARTITION OF gattherd.sample (CHECK (NOT far)) FOR VALUES IN (false)
            PARTITION BY RANGE (ts);
        CREATE TABLE gattherd.sample_other PARTITION OF gattherd.sample_near DEFAULT;
        CREATE TABLE gattherd.sample_far PARTITION OF gattherd.sample FOR VALUES IN (true);
        CREATE INDEX ON gattherd.sample (series, ts);
        CREATE INDEX ON gattherd.sample USING brin (ts) WITH (autosummarize = on);
        CREATE INDEX ON gattherd.sample_far (journal, seq);
        CREATE INDEX ON gattherd.sample_other (journal, seq);
        CREATE TABLE gattherd.minute (
            quantity int NOT NULL, ts bigint NOT NULL, n bigint NOT NULL, sum double precision NOT NULL,
            min double precision NOT NULL, max double precision NOT NULL, far boolean NOT NULL DEFAULT false,
            PRIMARY KEY (quantity, ts, far)
        ) PARTITION BY LIST (far);
        CREATE TABLE gattherd.minute_near PARTITION OF gattherd.minute (CHECK (NOT far)) FOR VALUES IN (false)
            PARTITION BY RANGE (ts);
        CREATE TABLE gattherd.minute_other PARTITION OF gattherd.minute_near DEFAULT;
        CREATE TABLE gattherd.minute_far PARTITION OF gattherd.minute FOR VALUES IN (true) WITH (fillfactor = 70);
        CREATE TABLE gattherd.hour (
            quantity int NOT NULL, ts bigint NOT NULL, n bigint NOT NULL, sum double precision NOT NULL,
            min double precision NOT NULL, max double precision NOT NULL, PRIMARY KEY (quantity, ts)
        ) WITH (fillfactor = 70);
        -- Advertisements that several gateways heard: see FleetReceptions.
        CREATE TABLE gattherd.reception (
            ts bigint NOT NULL, seq bigint NOT NULL, print bigint NOT NULL, first_seq bigint NOT NULL,
            first_journal int NOT NULL, journal int NOT NULL, air int NOT NULL, rssi smallint
        ) PARTITION BY RANGE (ts);
        CREATE INDEX ON gattherd.reception (air, print, ts);
        CREATE INDEX ON gattherd.reception USING brin (ts) WITH (autosummarize = on);
        CREATE TABLE gattherd.reception_other PARTITION OF gattherd.reception DEFAULT;
        CREATE TABLE gattherd.duplicate (LIKE gattherd.sample INCLUDING DEFAULTS) PARTITION BY RANGE (ts);
        CREATE INDEX ON gattherd.duplicate (series, ts);
        CREATE TABLE gattherd.duplicate_other PARTITION OF gattherd.duplicate DEFAULT;
        CREATE TABLE gattherd.head (
            series int PRIMARY KEY REFERENCES gattherd.metric_series, journal int NOT NULL, seq bigint NOT NULL,
            ts bigint NOT NULL, value double precision, element int, whole bigint, label text
        ) WITH (fillfactor = 50);
        CREATE TABLE gattherd.event (
            journal int NOT NULL, seq bigint NOT NULL, ts bigint NOT NULL, device text, kind text NOT NULL,
            detail text NOT NULL, came timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (journal, seq)
        );
        CREATE INDEX ON gattherd.event (ts);
        CREATE TABLE gattherd.reject (
            journal int NOT NULL, seq bigint NOT NULL, ts bigint NOT NULL, device text NOT NULL,
            characteristic text NOT NULL, octets bytea NOT NULL, reason text NOT NULL,
            came timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (journal, seq)
        );
        CREATE INDEX ON gattherd.reject (ts);
        -- The numbers and times of rows, with their arrival: a wrong clock makes new rows look old.
        CREATE TABLE gattherd.extent (
            journal int NOT NULL, first bigint NOT NULL, last bigint NOT NULL, first_ts bigint NOT NULL,
            last_ts bigint NOT NULL, came timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (journal, first)
        ) WITH (fillfactor = 50);
        CREATE INDEX ON gattherd.extent (came);
        CREATE INDEX ON gattherd.extent (first_ts);
        CREATE TABLE gattherd.correction (
            journal int NOT NULL, seq bigint NOT NULL, after bigint NOT NULL, through bigint NOT NULL,
            shift bigint NOT NULL, place bigint NOT NULL, PRIMARY KEY (journal, seq)
        );
        CREATE TABLE gattherd.retention (kind text PRIMARY KEY, keep interval);
        INSERT INTO gattherd.retention VALUES ('samples', '1 year'), ('minutes', '5 years'), ('hours', NULL),
            ('events', '1 year');
        CREATE TABLE gattherd.upkeep (task text PRIMARY KEY, done timestamptz NOT NULL, claimed_by name);
        INSERT INTO gattherd.upkeep VALUES ('retention', '-infinity');
        """#
}
