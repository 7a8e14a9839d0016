import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

/// The facts about a profile, as tables.
struct ProfileFacts {
    /// One table with a title.
    struct Section {
        let title: String
        let header: [String]
        let rows: [[String]]
    }

    let profile: any Profile

    init(_ profile: any Profile) {
        self.profile = profile
    }

    /// The condition under which a device is served.
    var serving: String {
        if profile.isForAdvertisements {
            let sources = served.joined(separator: ", or ")
            return "Listens to devices that name it in the configuration and advertise \(sources); "
                + "they are never connected."
        }
        if profile.isOptIn { return "Serves only devices that name it in the configuration." }
        guard !profile.services.isEmpty else {
            return "Serves any device that has one of the characteristics, after all profiles that name a service."
        }
        return "Serves devices that have \(profile.services.map(Self.named).joined(separator: ", or "))."
    }

    /// The short form of ``serving``.
    var served: [String] {
        if profile.isForAdvertisements {
            let places = profile.advertisements.map { Self.words($0) }
            return places.enumerated().filter { places.firstIndex(of: $1) == $0 }.map(\.element)
        }
        return profile.services.isEmpty ? ["any"] : profile.services.map(\.description)
    }

    /// The tables that are not empty.
    var sections: [Section] {
        [streams, frames, metrics, controls, tasks, topics].filter { !$0.rows.isEmpty }
    }

    /// Returns the UUID, followed by its name from the Bluetooth SIG.
    static func named(_ uuid: BluetoothUUID) -> String {
        uuid.assignedName.map { "\(uuid) \($0)" } ?? "\(uuid)"
    }

    private static func named(_ uuid: BluetoothUUID, in service: BluetoothUUID?) -> String {
        service.map { "\(named(uuid)), in \($0)" } ?? named(uuid)
    }

    private var streams: Section {
        let rows = profile.characteristics.map { characteristic in
            [
                characteristic.stream, Self.named(characteristic.uuid, in: characteristic.service),
                Self.source(characteristic), characteristic.isRequired ? "yes" : "no",
            ]
        }
        return Section(
            title: "What it decodes",
            header: ["stream", "characteristic", "how values come", "required"],
            rows: rows
        )
    }

    private static func source(_ characteristic: CharacteristicDescriptor) -> String {
        var words: [String] = []
        switch characteristic.subscription {
        case .none: break
        case .notify: words.append("notify")
        case .indicate: words.append("indicate")
        case .poll(let period): words.append("read every \(period)")
        }
        if characteristic.isReadAtConnect { words.append("read at connect") }
        if let period = characteristic.pollInstead { words.append("else read every \(period)") }
        if let poll = characteristic.poll {
            let requests = poll.requests.map(\.description).joined(separator: ", ")
            words.append("requested every \(poll.period) by \(poll.characteristic): \(requests)")
        }
        return words.joined(separator: ", ")
    }

    private var metrics: Section {
        let rows = profile.streams.enumerated().flatMap { index, stream in
            described(index).map { metric in
                var kind = metric.kind.rawValue
                if let bits = metric.wrapBits { kind += " of \(bits) bits" }
                if metric.isRepeated { kind += ", a list" }
                return [stream.name, metric.name, metric.unit ?? "", kind]
            }
        }
        return Section(title: "Metrics", header: ["stream", "metric", "unit", "kind"], rows: rows)
    }

    private var controls: Section {
        let rows = profile.controls.map { control in
            [
                control.name, control.kind.expectation + (control.unit.map { ", in \($0)" } ?? ""),
                Self.named(control.characteristic, in: control.service)
                    + (control.isAcknowledged ? "" : ", without response"),
                control.throttle.map { "at most one in \($0)" } ?? "", control.echo ?? "",
                control.answer.map(Self.words) ?? "",
            ]
        }
        let header = ["control", "takes", "written to", "throttle", "echoed by", "answer"]
        return Section(title: "Controls", header: header, rows: rows)
    }

    private var tasks: Section {
        let rows = profile.tasks.enumerated().map { index, task in
            ["\(index + 1)", Self.words(task), task.isRequired ? "yes" : "no"]
        }
        let downloads = profile.downloads.enumerated().map { index, download in
            ["\(rows.count + index + 1)", Self.words(download), "no"]
        }
        return Section(title: "At each connect", header: ["step", "action", "required"], rows: rows + downloads)
    }

    private static func words(_ download: DownloadDescriptor) -> String {
        let place = named(download.characteristic, in: download.service)
        let way =
            switch download.procedure {
            case .accessControlPoint: "by requests to"
            case .request: "by a request to"
            case .blocks: "in blocks, by requests to"
            }
        let period = download.period.map { ", again every \($0)" } ?? ""
        return "download the stored records of \(download.stream) \(way) \(place)\(period)"
    }

    private static func words(_ task: ConnectionTaskDescriptor) -> String {
        let place = named(task.characteristic, in: task.service)
        switch task.action {
        case .listen: return "listen to \(place)"
        case .write(let bytes, _, let answer):
            var words = "write \(bytes) to \(place)"
            if let resume = task.resume {
                words += ", or, after the first reading of \(resume.stream), "
                words += "\(Hexadecimal.text(resume.prefix.span)) and what comes after it"
            }
            return words + (answer.map { "; answer \(Self.words($0))" } ?? "")
        }
    }

    private static func words(_ answer: ResponseRule) -> String {
        let good = answer.cases.filter { $0.outcome == .success }.map(\.pattern.description).joined(separator: " or ")
        return "\(good) of \(answer.characteristic) within \(answer.timeout)"
    }

    private var topics: Section {
        let base = "gattherd/GATEWAY/DEVICE"
        let streams = profile.streams.enumerated().map { index, stream in
            let metrics = isOpen(index) ? ["those of the metrics that the device has"] : stream.metrics.map(\.name)
            let keys = (["seq", "ts", "source"] + metrics).joined(separator: ", ")
            return ["\(base)/\(stream.name)", "each reading: \(keys)"]
        }
        let controls = profile.controls.flatMap { control in
            [
                ["\(base)/\(control.name)/set", "takes \(control.kind.expectation)"],
                ["\(base)/\(control.name)/result", "the result"],
            ]
        }
        return Section(title: "MQTT", header: ["topic", "payload"], rows: streams + controls)
    }

    /// Example queries of history's views.
    var queries: [String] {
        let streams = profile.streams.map { stream in
            "SELECT time, metric, value, unit FROM history WHERE device = 'DEVICE' AND profile = '\(profile.name)' "
                + "AND stream = '\(stream.name)' ORDER BY ts DESC LIMIT 20;"
        }
        let number = profile.streams.flatMap(\.metrics).first { $0.kind == .gauge }
        let summary = number.map { metric in
            "SELECT time, n, min, mean, max, unit FROM history_minutes WHERE device = 'DEVICE' "
                + "AND metric = '\(metric.name)' ORDER BY ts DESC LIMIT 60;"
        }
        return streams + [summary].compactMap(\.self)
    }
}

// The facts about a profile of advertisements.
extension ProfileFacts {
    /// Returns the place of the bytes in an advertisement.
    static func words(_ frame: AdvertisementDescriptor) -> String {
        (frame.before.map(\.source) + [frame.source]).map(words).joined(separator: " and ")
    }

    private static func words(_ source: SourcePattern) -> String {
        if case .serviceData(let uuid) = source { "service data \(uuid)" } else { "\(source)" }
    }

    /// The table of decoded advertisements.
    var frames: Section {
        let rows = profile.advertisements.map { frame in
            [
                frame.stream, Self.words(frame), Self.marks(frame),
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

    /// Returns the bytes that identify the frame among others in the same AD structure.
    private static func marks(_ frame: AdvertisementDescriptor) -> String {
        var marks: [String] = []
        if let beginning = frame.beginning { marks.append("begins \(beginning)") }
        if let length = frame.length {
            let least = length.lowerBound
            marks.append(length.count == 1 ? "\(least) bytes" : "\(least) to \(length.upperBound) bytes")
        }
        if !frame.names.isEmpty {
            marks.append("from " + frame.names.map(\.description).joined(separator: " or "))
        }
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
