import GattherdGATT
import GattherdGateway
import GattherdModel

// The facts about a profile of advertisements.
extension ProfileFacts {
    /// Returns the place of the bytes in an advertisement.
    static func words(_ source: AdvertisementSource) -> String {
        switch source {
        case .manufacturer: "\(source)"
        case .serviceData(let uuid): "service data \(uuid)"
        }
    }

    /// The table of decoded advertisements.
    var frames: Section {
        let rows = profile.advertisements.map { frame in
            [
                frame.stream, Self.words(frame.source), Self.marks(frame),
                frame.isCounted ? "its counter changes" : "the bytes change",
                RelativeTime.length(frame.renewal), RelativeTime.length(frame.silence),
            ]
        }
        return Section(
            title: "What it decodes",
            header: ["stream", "where", "which", "new when", "repeated after", "away after"],
            rows: rows
        )
    }

    /// Returns the bytes that identify the frame among others in the same place.
    private static func marks(_ frame: AdvertisementDescriptor) -> String {
        var marks: [String] = []
        if let beginning = frame.beginning { marks.append("begins \(beginning)") }
        if let length = frame.length {
            let least = length.lowerBound
            marks.append(length.count == 1 ? "\(least) bytes" : "\(least) to \(length.upperBound) bytes")
        }
        if let name = frame.name { marks.append("from \(name)") }
        return marks.isEmpty ? "any" : marks.joined(separator: ", ")
    }

    /// True if the metrics of a stream are all metrics of its format.
    func isOpen(_ stream: Int) -> Bool { profile.isForAdvertisements && profile.advertisements[stream].isOpen }

    /// Returns the metrics of a stream; for an open one, only the first of repeated values.
    func described(_ stream: Int) -> [MetricDescriptor] {
        let metrics = profile.streams[stream].metrics
        guard isOpen(stream) else { return metrics }
        let names = Set(metrics.map(\.name))
        return metrics.filter { metric in
            let parts = metric.name.split(separator: "_")
            guard let number = parts.last.flatMap({ Int($0) }), number > 1 else { return true }
            return !names.contains(parts.dropLast().joined(separator: "_"))
        }
    }
}
