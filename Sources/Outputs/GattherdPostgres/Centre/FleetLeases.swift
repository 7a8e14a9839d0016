/// Leases at the centre: which gateway owns a device, and the bids of all gateways.
enum FleetLeases {
    /// The tables; `gateways` are those that may own the device, or `NULL` for all.
    static let tables = #"""
        CREATE TABLE gattherd.lease (
            address text PRIMARY KEY CHECK (length(address) <= 64), device text NOT NULL,
            owner int REFERENCES gattherd.gateway, previous int REFERENCES gattherd.gateway,
            epoch bigint NOT NULL DEFAULT 0, expires timestamptz NOT NULL DEFAULT 'epoch',
            released boolean NOT NULL DEFAULT true, since timestamptz, reason text NOT NULL DEFAULT '',
            gateways text[]
        ) WITH (fillfactor = 50);
        CREATE TABLE gattherd.lease_bid (
            address text NOT NULL REFERENCES gattherd.lease, gateway int NOT NULL REFERENCES gattherd.gateway,
            device text NOT NULL,
            standing text NOT NULL CHECK (standing IN ('linked', 'held', 'steady', 'heard', 'silent', 'gone')),
            rssi smallint, problem text, updated timestamptz NOT NULL, PRIMARY KEY (address, gateway)
        ) WITH (fillfactor = 50);
        """#

    static let sql = #"""
        -- Writes bids of the caller, applies its wishes, and returns the leases with their bids: one round trip. Bids
        -- that were not repeated for 30 s count for nothing and are left out: there may be one of each gateway.
        --
        -- A wish is performed only if the lease still has the epoch that the gateway knows: compare and set. A claim needs
        -- a lease that is free, or the caller's own. Rows are locked in the order of their addresses. An epoch is never
        -- below the time in milliseconds, so that a standby that lacks the last claims does not give an epoch again. A
        -- lease that ends later than it can was given before the clock was set back; it counts as ended. A bid of
        -- the future counts as old: its gateway may be gone, and the bid would keep all others from a free lease.
        --
        -- A list has the names of the gateways that may own the device, separated by commas; it is empty for all. Gateways
        -- that are not in the stored list neither claim nor renew. A list begins with a known gateway. Without a stored
        -- list any gateway gives one. From then on only the gateway that is first in it changes or removes it.
        CREATE OR REPLACE FUNCTION gattherd.exchange_leases(
            gateway_name text, addresses text[], devices text[], standings text[], rssis bigint[], problems text[],
            wishes text[], epochs bigint[], reasons text[], lists text[] DEFAULT NULL
        ) RETURNS TABLE (
            address text, owner text, previous text, epoch bigint, remaining bigint, released boolean, reason text,
            gateway text, standing text, rssi smallint, problem text, age bigint, granted boolean, allowed text
        ) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '3s' AS $$
        #variable_conflict use_column
        DECLARE
            caller int := gattherd.caller();
            term constant interval := '30 seconds';
            new_epoch bigint := floor(extract(epoch FROM now()) * 1000);
            expected text;
            entry record;
            performed text[] := '{}';
        BEGIN
            SELECT g.name INTO expected FROM gattherd.gateway g WHERE g.id = caller;
            IF expected <> gateway_name THEN
                RAISE EXCEPTION 'the role "%" is that of the gateway "%", not "%"', session_user, expected,
                    gateway_name
                USING ERRCODE = '42501';
            END IF;
            IF cardinality(addresses) > 10000 THEN
                RAISE EXCEPTION 'too many devices' USING ERRCODE = '54000';
            END IF;
            IF EXISTS (SELECT FROM unnest(addresses) AS a(address)
                WHERE NOT EXISTS (SELECT FROM gattherd.lease l WHERE l.address = a.address))
            THEN
                IF (SELECT count(*) FROM gattherd.lease) >= 100000 THEN
                    RAISE EXCEPTION 'too many leases' USING ERRCODE = '54000';
                END IF;
                INSERT INTO gattherd.lease (address, device)
                SELECT r.address, left(r.device, 64) FROM unnest(addresses, devices) AS r(address, device)
                ORDER BY r.address COLLATE "C" ON CONFLICT DO NOTHING;
            END IF;
            INSERT INTO gattherd.lease_bid AS b (address, gateway, device, standing, rssi, problem, updated)
            SELECT r.address, caller, left(r.device, 64), r.standing,
                CASE WHEN r.rssi BETWEEN -127 AND 20 THEN r.rssi END, left(r.problem, 200), now()
            FROM unnest(addresses, devices, standings, rssis, problems) AS r(address, device, standing, rssi, problem)
            WHERE r.standing IS NOT NULL
            ON CONFLICT (address, gateway) DO UPDATE SET device = excluded.device, standing = excluded.standing,
                rssi = excluded.rssi, problem = excluded.problem, updated = excluded.updated;
            -- In one order before all changes, so that two gateways do not wait for each other.
            PERFORM FROM gattherd.lease l WHERE l.address IN (
                SELECT r.address FROM unnest(addresses, wishes, lists) AS r(address, wish, list)
                WHERE r.list IS NOT NULL OR r.wish IN ('claim', 'renew', 'release')
            ) ORDER BY l.address COLLATE "C" FOR NO KEY UPDATE;
            FOR entry IN
                SELECT r.address, nullif(string_to_array(r.list, ','), '{}') AS owners
                FROM unnest(addresses, lists) AS r(address, list)
                WHERE length(r.list) <= 4096
            LOOP
                UPDATE gattherd.lease l SET gateways = entry.owners
                WHERE l.address = entry.address AND l.gateways IS DISTINCT FROM entry.owners
                    AND (l.gateways IS NULL OR l.gateways[1] = expected)
                    AND (entry.owners IS NULL
                        OR EXISTS (SELECT FROM gattherd.gateway g WHERE g.name = entry.owners[1]));
            END LOOP;
            FOR entry IN
                SELECT r.* FROM unnest(addresses, devices, wishes, epochs, reasons)
                    AS r(address, device, wish, epoch, reason)
                WHERE r.wish IN ('claim', 'renew', 'release')
            LOOP
                IF entry.wish = 'claim' THEN
                    UPDATE gattherd.lease l SET owner = caller, device = left(entry.device, 64),
                        previous = CASE WHEN l.owner = caller THEN l.previous ELSE l.owner END,
                        epoch = greatest(l.epoch + 1, new_epoch), expires = now() + term, released = false,
                        since = now(), reason = left(entry.reason, 400)
                    WHERE l.address = entry.address AND l.epoch = entry.epoch
                        AND (l.released OR l.owner = caller OR l.expires <= now() OR l.expires > now() + 2 * term)
                        AND (l.gateways IS NULL OR expected = ANY (l.gateways));
                ELSIF entry.wish = 'renew' THEN
                    UPDATE gattherd.lease l SET expires = now() + term
                    WHERE l.address = entry.address AND l.epoch = entry.epoch AND l.owner = caller AND NOT l.released
                        AND (l.gateways IS NULL OR expected = ANY (l.gateways));
                ELSE
                    UPDATE gattherd.lease l SET expires = now(), released = true, reason = left(entry.reason, 400)
                    WHERE l.address = entry.address AND l.epoch = entry.epoch AND l.owner = caller;
                END IF;
                IF FOUND THEN performed := performed || entry.address; END IF;
            END LOOP;
            RETURN QUERY
            SELECT l.address, o.name, p.name, l.epoch,
                CASE WHEN l.expires > now() + 2 * term THEN 0::bigint
                    ELSE floor(extract(epoch FROM l.expires - now()) * 1000)::bigint END,
                l.released, l.reason, g.name, b.standing, b.rssi, b.problem,
                CASE WHEN b.updated > now() + term THEN 86400000::bigint
                    ELSE greatest(0, floor(extract(epoch FROM now() - b.updated) * 1000))::bigint END,
                l.address = ANY (performed), array_to_string(l.gateways, ',')
            FROM gattherd.lease l
            LEFT JOIN gattherd.gateway o ON o.id = l.owner LEFT JOIN gattherd.gateway p ON p.id = l.previous
            LEFT JOIN gattherd.lease_bid b ON b.address = l.address AND b.updated > now() - term
            LEFT JOIN gattherd.gateway g ON g.id = b.gateway
            WHERE l.address = ANY (addresses) ORDER BY l.address, g.name;
        END $$;

        CREATE OR REPLACE VIEW gattherd.leases AS
        SELECT l.device, l.address, o.name AS owner,
            CASE WHEN l.owner IS NULL THEN 'never owned' WHEN l.released THEN 'released'
                WHEN l.expires <= now() THEN 'expired' ELSE 'owned' END AS state,
            l.epoch, l.since, l.expires, p.name AS previous, l.reason, l.gateways
        FROM gattherd.lease l LEFT JOIN gattherd.gateway o ON o.id = l.owner
            LEFT JOIN gattherd.gateway p ON p.id = l.previous;

        CREATE OR REPLACE VIEW gattherd.bids AS
        SELECT b.device, b.address, g.name AS gateway,
            CASE WHEN b.updated BETWEEN now() - interval '25 seconds' AND now() + interval '30 seconds' THEN b.standing
                ELSE 'gone' END AS standing,
            CASE WHEN b.updated BETWEEN now() - interval '25 seconds' AND now() + interval '30 seconds' THEN b.rssi
                END AS rssi, b.problem, b.updated
        FROM gattherd.lease_bid b JOIN gattherd.gateway g ON g.id = b.gateway;
        """#
}
