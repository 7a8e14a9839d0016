/// Arithmetic at the centre that never fails.
enum FleetArithmetic {
    static let sql = #"""
        -- Functions of views have a body that is parsed when they are made. A text would be parsed with the search path
        -- of each reader, and so call operators of others.
        CREATE OR REPLACE FUNCTION gattherd.floored(ts bigint, step bigint) RETURNS bigint
        LANGUAGE sql IMMUTABLE PARALLEL SAFE
        RETURN ts - ((ts % step) + step) % step;

        CREATE OR REPLACE FUNCTION gattherd.rfc3339(ts bigint) RETURNS text
        LANGUAGE sql STABLE PARALLEL SAFE
        RETURN CASE WHEN ts BETWEEN -62135596800000000 AND 253402300799999999 THEN
            to_char(timestamp 'epoch' + (gattherd.floored(ts, 1000000) / 1000000) * interval '1 second',
                'YYYY-MM-DD"T"HH24:MI:SS')
            || '.' || lpad((((ts % 1000000) + 1000000) % 1000000)::text, 6, '0') || 'Z' END;

        -- A number whose sums cannot overflow; only sums and means of numbers beyond 1e298 are wrong.
        CREATE OR REPLACE FUNCTION gattherd.bounded(v double precision) RETURNS double precision
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT CASE WHEN v > 1e298 THEN 1e298 WHEN v < -1e298 THEN -1e298 ELSE v END
        $$;

        -- The mean of n numbers; 0 if it is too small for a division.
        CREATE OR REPLACE FUNCTION gattherd.mean(sum double precision, n bigint) RETURNS double precision
        LANGUAGE sql IMMUTABLE PARALLEL SAFE
        RETURN CASE WHEN abs(sum) < 1e-290 THEN 0 ELSE sum / n END;

        -- The sum of two sums; never an error.
        CREATE OR REPLACE FUNCTION gattherd.total(a double precision, b double precision) RETURNS double precision
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT least(greatest(a, -8e307), 8e307) + least(greatest(b, -8e307), 8e307)
        $$;
        """#
}
