import GattherdGateway
import GattherdModel

/// An event, or several equal ones in one line.
struct ExplainedEvent: Hashable {
    /// The time of the last occurrence.
    var time: Timestamp
    let first: Timestamp
    var count = 1
    let text: String

    init(_ time: Timestamp, _ text: String) {
        self.time = time
        self.text = text
        first = time
    }
}

extension [ExplainedEvent] {
    /// The number of events in the longest cycle of a flapping link.
    private static let cycle = 7

    /// Creates lines in time order; repeated or alternating events become one line with a count.
    init(_ events: [LifecycleEvent]) {
        self.init()
        for event in events {
            var line = ExplainedEvent(event.time, event.words)
            if let index = indices.suffix(Self.cycle).last(where: { self[$0].text == line.text }) {
                line = remove(at: index)
                line.count += 1
                line.time = event.time
            }
            append(line)
        }
    }
}

extension LifecycleEvent {
    /// The event in words.
    fileprivate var words: String {
        let detail = EventDetail(self)
        let subject = detail.adapter ?? detail.detail ?? ""
        switch kind {
        case "link": return detail.linkWords
        case "daemon": return detail.daemonWords
        case "output": return OutputGap(self)?.eventWords ?? detail.outputWords
        case "alert":
            return "alert '\(detail.alert ?? "")' \(detail.state ?? "")" + (detail.detail.map { ": \($0)" } ?? "")
        case "bluetoothd": return "bluetoothd \(detail.state ?? "")" + (detail.detail.map { ": \($0)" } ?? "")
        case "adapter": return "adapter \(subject) \(detail.state ?? "")"
        case "recovery":
            let (symptom, step) = (DisplayWords.symptom(detail.symptom ?? ""), DisplayWords.step(detail.step ?? ""))
            return "adapter \(subject) did not work (\(symptom)): \(step)"
        case "silence" where detail.state == "resumed": return "its link works again"
        case "silence": return "silent" + (detail.detail.map { ": \($0)" } ?? "")
        case "control":
            let value = detail.value.flatMap { $0.isEmpty ? nil : " = \($0)" } ?? ""
            return "control \(detail.control ?? "")\(value)" + (detail.error.map { ": \($0)" } ?? "")
        case "records":
            let stream = detail.stream.map { " of '\($0)'" } ?? ""
            let reason = (detail.error ?? detail.detail).map { ": \($0)" } ?? ""
            return "stored records\(stream) \(detail.state ?? "")\(reason)"
        case "task": return "a connection task failed" + (detail.error.map { ": \($0)" } ?? "")
        case "stream":
            return (detail.stream.map { "stream '\($0)'" } ?? "streams") + (detail.error.map { ": \($0)" } ?? "")
        default:
            return ([kind, detail.state].compactMap(\.self).joined(separator: " "))
                + (detail.detail.map { ": \($0)" } ?? "")
        }
    }
}

extension OutputGap {
    fileprivate var eventWords: String { "output '\(output)' skipped \(Self.words(entries)), \(words)" }
}

extension EventDetail {
    fileprivate var outputWords: String {
        "output '\(output ?? "")' \(DisplayWords.plain(state ?? ""))"
            + ([reason, error, detail].compactMap(\.self).first.map { ": \($0)" } ?? "")
    }

    fileprivate var daemonWords: String {
        switch state {
        case "reloaded": return "the configuration was reloaded"
        case "reload_failed":
            let reason = detail?.split(separator: "\n").first.map { ": \($0)" } ?? ""
            return "the configuration was not reloaded\(reason)"
        default: return "gattherd \(state ?? "")"
        }
    }

    fileprivate var linkWords: String {
        let because = cause.map { ": \($0)" } ?? ""
        switch target {
        case .waiting: return "waiting until it is heard\(because)"
        case .connecting: return "connecting"
        case .discovering: return "connected, reading its services\(because)"
        case .preparing: return "subscribing"
        case .ready: return "ready"
        case .disconnecting: return "disconnecting\(because)"
        case .disconnected: return "disconnected\(because)"
        case .backingOff: return "\(from == LinkState.connecting.rawValue ? "attempt failed" : "link lost")\(because)"
        case .held: return "held: \(detail ?? "disconnected by hand")"
        case .failed: return "failed\(because)"
        case nil: return to ?? "link"
        }
    }
}

/// The members of an event that explanations use; each kind of event has some of them.
struct EventDetail: Hashable {
    var from: String?
    var to: String?
    var reason: String?
    var detail: String?
    var state: String?
    var adapter: String?
    var step: String?
    var symptom: String?
    var control: String?
    var value: String?
    var error: String?
    var output: String?
    var alert: String?
    var stream: String?
    var after: Int64?
    var through: Int64?
    var entries: Int64?
    var count: Int64?
    var seq: Int64?

    /// Reads the members that are texts or numbers; none of an invalid detail.
    init(_ event: LifecycleEvent) {
        guard case .object(let members) = try? JSONReader.value(of: Array(event.detail.utf8)) else { return }
        for member in members {
            switch member.value {
            case .string(let text): set(member.name, text)
            case .integer(let number): set(member.name, number)
            default: break
            }
        }
    }

    private mutating func set(_ name: String, _ text: String) {
        switch name {
        case "from": from = text
        case "to": to = text
        case "reason": reason = text
        case "detail": detail = text
        case "state": state = text
        case "adapter": adapter = text
        case "step": step = text
        case "symptom": symptom = text
        case "control": control = text
        case "value": value = text
        case "error": error = text
        case "output": output = text
        case "alert": alert = text
        case "stream": stream = text
        default: break
        }
    }

    private mutating func set(_ name: String, _ number: Int64) {
        switch name {
        case "after": after = number
        case "through": through = number
        case "entries": entries = number
        case "count": count = number
        case "seq": seq = number
        default: break
        }
    }

    var target: LinkState? { to.flatMap { LinkState(rawValue: $0) } }

    /// The reason why a link ended or failed: the cause, then the detail of BlueZ.
    var cause: String? {
        let parts = [reason.map { DisplayWords.reason($0) }, detail].compactMap(\.self)
        return parts.isEmpty ? nil : parts.joined(separator: ": ")
    }
}
