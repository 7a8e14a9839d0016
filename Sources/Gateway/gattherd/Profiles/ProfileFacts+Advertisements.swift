import GattherdGATT
import GattherdGateway
import GattherdModel

// What is to be said about a profile of advertisements.
extension ProfileFacts {
    /// Where in an advertisement the octets are.
    static func words(_ source: AdvertisementSource) -> String {
        switch source {
        case .manufacturer: "\(source)"
        case .serviceData(let uuid): "service data \(uuid)"
        }
    }

    /// What it decodes, where that is advertised.
    var frames: Section {
        let rows = profile.advertisements.map { frame in
            [
                frame.stream, Self.words(frame.source), Self.marks(frame),
                frame.isCounted ? "its counter changes" : "the octets change",
                RelativeTime.length(frame.renewal), RelativeTime.length(frame.silence),
            ]
        }
        return Section(
            title: "What it decodes",
            header: ["stream", "where", "which", "new when", "told again after", "away after"],
            rows: rows
        )
    }

    /// What tells the frame from others in the same place.
    private static func marks(_ frame: AdvertisementDescriptor) -> String {
        var marks: [String] = []
        if let beginning = frame.beginning { marks.append("begins \(beginning)") }
        if let length = frame.length {
            let least = length.lowerBound
            marks.append(length.count == 1 ? "\(least) octets" : "\(least) to \(length.upperBound) octets")
        }
        if let name = frame.name { marks.append("from \(name)") }
        return marks.isEmpty ? "any" : marks.joined(separator: ", ")
    }

    /// The metrics of a stream are all that its format knows.
    func isOpen(_ stream: Int) -> Bool { profile.isForAdvertisements && profile.advertisements[stream].isOpen }

    /// The metrics of a stream; of an open one those of first values, as every one may have a second and third.
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
