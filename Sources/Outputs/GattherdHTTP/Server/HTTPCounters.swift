public import GattherdLog

/// What a server counts.
public struct HTTPCounters: Sendable {
    /// Answers by the first digit of their status, 1 to 5.
    private let answers = [
        Counter("http_responses_1xx_total"), Counter("http_responses_2xx_total"), Counter("http_responses_3xx_total"),
        Counter("http_responses_4xx_total"), Counter("http_responses_5xx_total"),
    ]
    public let connections = Counter("http_connections_total")
    /// Connections that were ended because a request did not arrive, or an answer was not read, in time.
    public let slowClients = Counter("http_slow_clients_total")
    /// Requests that the rules of access refused.
    public let refused = Counter("http_requests_refused_total")
    /// Messages that readers of events did not get, because they did not keep up.
    public let eventsDropped = Counter("http_events_dropped_total")

    /// Counts the answers with a status of a hundred, `nil` for a number that is none.
    public func answers(hundred: Int) -> Counter? {
        answers.indices.contains(hundred - 1) ? answers[hundred - 1] : nil
    }

    init() {}

    /// All but the answers.
    var described: [DescribedCounter] {
        [
            DescribedCounter(connections, "HTTP connections"),
            DescribedCounter(slowClients, "HTTP connections ended because the client took too long"),
            DescribedCounter(refused, "HTTP requests refused by the rules of access"),
            DescribedCounter(eventsDropped, "Messages that slow readers of events did not get"),
        ]
    }

    var responses: MetricFamily {
        let points = answers.enumerated().map { MetricFamily.Point(Double($1.value), ["code": "\($0 + 1)xx"]) }
        return MetricFamily(
            "gattherd_http_responses_total",
            .counter,
            "HTTP answers by the class of their status",
            points
        )
    }
}
