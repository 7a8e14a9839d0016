package import GattherdLog

/// The counters of a server.
package struct HTTPCounters: Sendable {
    /// Responses by the first digit of their status, 1 to 5.
    private let classes = [
        Counter("http_responses_1xx_total"), Counter("http_responses_2xx_total"), Counter("http_responses_3xx_total"),
        Counter("http_responses_4xx_total"), Counter("http_responses_5xx_total"),
    ]
    package let connections = Counter("http_connections_total")
    /// Connections closed because a request or the reading of a response took too long.
    package let slowClients = Counter("http_slow_clients_total")
    /// Requests refused by the access rules.
    package let refused = Counter("http_requests_refused_total")
    /// Messages that slow readers of the event stream skipped.
    package let eventsDropped = Counter("http_events_dropped_total")

    /// Returns the counter of a class of status codes, 1 to 5.
    package func responses(hundred: Int) -> Counter? {
        classes.indices.contains(hundred - 1) ? classes[hundred - 1] : nil
    }

    init() {}

    /// All counters except the responses.
    var described: [DescribedCounter] {
        [
            DescribedCounter(connections, "HTTP connections"),
            DescribedCounter(slowClients, "HTTP connections closed because the client was too slow"),
            DescribedCounter(refused, "HTTP requests refused by the access rules"),
            DescribedCounter(eventsDropped, "Messages that slow readers of the event stream skipped"),
        ]
    }

    var responses: MetricFamily {
        let points = classes.enumerated().map { MetricFamily.Point(Double($1.value), ["code": "\($0 + 1)xx"]) }
        return MetricFamily(
            "gattherd_http_responses_total",
            .counter,
            "HTTP responses by class of status codes",
            points
        )
    }
}
