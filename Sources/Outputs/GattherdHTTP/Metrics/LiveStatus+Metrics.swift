import GattherdModel

extension LiveStatus {
    /// The maximum number of sample series.
    private static let sampleLimit = 10_000

    var linkMetrics: [MetricFamily] {
        let (ready, failures) = linkCounts
        let links = ready.sorted { $0.key < $1.key }.map { MetricFamily.Point(Double($1), ["device": $0]) }
        // Zeros as well: a rate needs a first value.
        let reasons = LinkReason.allCases.map { reason in
            MetricFamily.Point(Double(failures[reason] ?? 0), ["reason": reason.rawValue])
        }
        return [
            MetricFamily("gattherd_device_links_total", .counter, "Number of times that the link became ready", links),
            MetricFamily(
                "gattherd_link_failures_total",
                .counter,
                "Links that ended or could not be established",
                reasons
            ),
        ]
    }

    /// The newest numeric samples of connected devices.
    var sampleMetrics: [MetricFamily] {
        let snapshot = snapshot
        let streams = snapshot.streams.filter { snapshot.links[$0.stream.device]?.isOnline == true }
            .sorted { ($0.stream.device, $0.stream.stream) < ($1.stream.device, $1.stream.stream) }
        let points = streams.flatMap(\.points)
        return [
            MetricFamily("gattherd_sample", .gauge, "The newest sample", Array(points.prefix(Self.sampleLimit))),
            MetricFamily(
                "gattherd_samples_left_out",
                .gauge,
                "Samples above the limit of series",
                max(0, points.count - Self.sampleLimit)
            ),
        ]
    }
}

extension LiveStream {
    fileprivate var points: [MetricFamily.Point] {
        values.compactMap { metric, value in
            guard let number = value.numberOrFlag else { return nil }
            return MetricFamily.Point(
                number,
                [
                    "device": stream.device, "profile": stream.profile, "stream": stream.stream, "metric": metric.name,
                    "unit": metric.unit ?? "",
                ]
            )
        }
    }
}
