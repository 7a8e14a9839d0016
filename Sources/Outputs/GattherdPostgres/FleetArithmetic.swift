/// Arithmetic at the centre that never fails.
enum FleetArithmetic {
    static let sql = #"""
        CREATE OR REPLACE FUNCTION gattherd.floored(ts bigint, step bigint) RETURNS bigint
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT ts - ((ts % step) + step) % step';

        CREATE OR REPLACE FUNCTION gattherd.rfc3339(ts bigint) RETURNS text
        LANGUAGE sql STABLE PARALLEL SAFE AS $$
            SELECT CASE WHEN ts BETWEEN -62135596800000000 AND 253402300799999999 THEN
                to_char(timestamp 'epoch' + (gattherd.floored(ts, 1000000) / 1000000) * interval '1 second',
                    'YYYY-MM-DD"T"HH24:MI:SS')
                || '.' || lpad((((ts % 1000000) + 1000000) % 1000000)::text, 6, '0') || 'Z' END
        $$;

        -- Saturates instead of failing: scaling by powers of two is exact.
        CREATE OR REPLACE FUNCTION gattherd.total(a double precision, b double precision) RETURNS double precision
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT 2 * least(greatest(a / 2 + b / 2, -8.98846567431157e307), 8.98846567431157e307)
        $$;

        -- A sum of numbers that were divided by 2 ^ 32, so that it cannot overflow.
        CREATE OR REPLACE FUNCTION gattherd.unscaled(sum double precision) RETURNS double precision
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT 4294967296 * least(greatest(sum, -4.1855804968213567e298), 4.1855804968213567e298)
        $$;
        """#
}
