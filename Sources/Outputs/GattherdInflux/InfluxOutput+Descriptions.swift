package import GattherdConfig

extension InfluxOutput {
    package static let descriptions: [String: ConfigDescription] = [
        "": ConfigDescription("InfluxDB 1, 2 and 3, VictoriaMetrics, and others with their API."),
        "url": ConfigDescription(
            "The server; http:// without TLS. A path before the API's is kept.",
            example: "https://influx.lan:8086"
        ),
        "database": ConfigDescription(
            "The database of InfluxDB 1 or VictoriaMetrics.",
            example: "home",
            otherwise: "none"
        ),
        "retention_policy": ConfigDescription(
            "The retention policy of InfluxDB 1; needs `database`.",
            example: "two_weeks",
            otherwise: "the database's own"
        ),
        "bucket": ConfigDescription("The bucket of InfluxDB 2 or 3.", example: "sensors", otherwise: "none"),
        "org": ConfigDescription("The organisation in InfluxDB 2; needs `bucket`.", example: "home", otherwise: "none"),
        "username": ConfigDescription("A user of InfluxDB 1.", example: "gateway", otherwise: "none"),
        "password_file": ConfigDescription(
            "A file whose first line is the user's password.",
            example: "/etc/gattherd/influx-password",
            otherwise: "none"
        ),
        "token_file": ConfigDescription(
            "A file whose first line is the token, for all others than InfluxDB 1.",
            example: "/etc/gattherd/influx-token",
            otherwise: "none"
        ),
        "measurement": ConfigDescription(
            "The measurement of a reading's point; {stream}, {device} and {profile} are replaced.",
            example: "\"{stream}\"",
            otherwise: "{stream}"
        ),
        "batch": ConfigDescription("The size of requests."),
        "batch.entries": ConfigDescription("The most readings in a request.", default: "1000"),
        "batch.interval": ConfigDescription("The time in which readings gather.", default: "1s"),
        "gzip": ConfigDescription("True if requests are compressed.", default: "true"),
    ]
}
