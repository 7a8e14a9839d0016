package import GattherdLog

/// The counters of a server.
package struct HTTPCounters: Sendable {
    /// Responses by the first digit of their status, 1 to 5.
    private let classes = (1...5).map { _ in
        Counter("http_responses_total", "HTTP responses by class of status codes")
    }
    package let connections = Counter("http_connections_total", "HTTP connections")
    package let slowClients = Counter(
        "http_slow_clients_total",
        "HTTP connections closed because the client was too slow"
    )
    package let refused = Counter("http_requests_refused_total", "HTTP requests refused by the access rules")
    package let eventsDropped = Counter(
        "http_events_dropped_total",
        "Messages that slow readers of the event stream skipped"
    )

    /// Returns the counter of a class of status codes, 1 to 5.
    package func responses(hundred: Int) -> Counter? {
        classes.indices.contains(hundred - 1) ? classes[hundred - 1] : nil
    }

    init() {}

    /// All counters except the responses.
    var all: [Counter] { [connections, slowClients, refused, eventsDropped] }

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
