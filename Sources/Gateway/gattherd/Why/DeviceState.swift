import GattherdGateway
import GattherdModel

/// The state of a device, the daemon's next step, and advice.
struct DeviceState {
    private let device: String
    private let sources: DeviceExplanation.Sources
    private let link: DaemonStatus.Device?
    private let now: Timestamp

    init(_ sources: DeviceExplanation.Sources, _ link: DaemonStatus.Device?, now: Timestamp) {
        device = sources.device
        self.sources = sources
        self.link = link
        self.now = now
    }

    private var state: LinkState? { link.flatMap { LinkState(rawValue: $0.state) } }
    private var reason: LinkReason? { link?.reason.flatMap { LinkReason(rawValue: $0) } }
    /// True if no data arrives although the link is up.
    private var isStalled: Bool { state == .ready && reason == .silent }
    private var poweredAdapters: [DaemonStatus.Adapter] { sources.status?.adapters.filter(\.powered) ?? [] }

    var headline: String {
        guard sources.status != nil else {
            return sources.configurationError.map { "the configuration is wrong, so the daemon cannot start: \($0)" }
                ?? "no daemon runs with this configuration"
        }
        guard let link, let state else { return "the running daemon does not know it yet" }
        let age = RelativeTime.since(link.since, now).map { ", for \($0)" } ?? ""
        // The state `held` already says that the device was disconnected on request.
        let reason = state == .held ? nil : link.reason.map { DisplayWords.reason($0) }
        let words = [reason, link.detail].compactMap(\.self).joined(separator: ": ")
        let why = words.isEmpty || state == .ready && !isStalled ? "" : ": \(words)"
        let attempts = link.attempt > 1 ? ", \(link.attempt) times in a row" : ""
        return "\(state.words)\(age)\(why)\(attempts)"
    }

    /// The daemon's next step and its time.
    var next: String {
        guard sources.status != nil else {
            guard sources.configurationError == nil else {
                return "correct the configuration (gattherd check \(sources.configuration)), then start the daemon: "
                    + DaemonClient.startCommand
            }
            return "nothing, until the daemon is started: \(DaemonClient.startCommand)"
        }
        guard let link, let state else { return "it is connected once the daemon has the configuration" }
        if reason == .adapterFull, !state.holdsLink {
            return "it gets the next free slot; now and then the daemon tries for one"
        }
        switch state {
        case .waiting where link.onlyAdvertises == true:
            // Advertisement monitors hear without a scan.
            return "its values are stored when it is heard" + (poweredAdapters.isEmpty ? scanning : "")
        case .waiting: return "it is connected when it is heard\(scanning)"
        case .connecting, .discovering, .preparing:
            return "the attempt succeeds, or is given up after \(RelativeTime.length(sources.connectTimeout)) a step"
        case .ready where isStalled:
            return "the daemon tries bluetoothd every few seconds; pending values are stored when it answers"
        case .ready:
            let last = link.lastReading.flatMap { RelativeTime.ago($0, now) }.map { "; the last came \($0)" }
            let running = (link.records ?? []).first { $0.state == "downloading" }
            let download = running.map { "; stored records of '\($0.stream)' are downloaded: \($0.words)" }
            return "its readings are stored as they arrive\(last ?? "")\(download ?? "")"
        case .disconnecting: return "the link ends"
        case .disconnected where reason == .ownedElsewhere:
            return "it is connected here if this gateway gets its lease"
        case .disconnected: return "it is connected when there is an adapter that is on, and it is heard"
        case .held: return "nothing, until: gattherd connect \(device)"
        case .backingOff, .failed: return retry(link)
        }
    }

    private func retry(_ link: DaemonStatus.Device) -> String {
        guard let time = link.nextRetry, let ahead = RelativeTime.ahead(time, now) else {
            return "it is tried again when its turn comes"
        }
        guard ahead != "now" else { return "it is tried again now, when its turn comes and it is heard" }
        let clock = time.dropFirst(11).prefix(8)
        return "\(ahead), at \(clock) UTC, it is tried again; at once with: gattherd connect \(device)"
    }

    private var scanning: String {
        guard !poweredAdapters.isEmpty else { return "; but there is no adapter that is on" }
        let isScanning = poweredAdapters.contains(where: \.discovering)
        return isScanning ? "; an adapter is scanning" : "; no adapter is scanning at this moment"
    }

    var advice: [String] { linkAdvice + outputAdvice }

    /// The outputs that fail or are behind, while readings are stored.
    private var outputAdvice: [String] {
        let outputs = sources.status?.outputs ?? []
        return outputs.compactMap { output in output.problem(now: now).map { "\($0); \(output.remedy)" } }
    }

    private var linkAdvice: [String] {
        guard sources.status != nil, let link, let state else { return [] }
        if reason == .ownedElsewhere { return [] }
        if poweredAdapters.isEmpty { return ["no Bluetooth adapter is on: gattherd doctor says why"] }
        if reason == .adapterFull { return [reason?.advice(for: device)].compactMap(\.self) }
        if let profile = link.suggestedProfile, let model = link.model {
            return ["it looks like \(model): write 'profiles: [\(profile)]' to the device, then: gattherd reload"]
        }
        if let advice = link.decodingAdvice { return [advice] }
        switch state {
        case .ready where isStalled:
            return ["see: systemctl status bluetooth; if this lasts: systemctl restart bluetooth"]
        case .ready, .held, .disconnecting: return []
        case .waiting: return waiting(link)
        case .connecting, .discovering, .preparing, .disconnected, .backingOff, .failed:
            return [reason?.advice(for: device), link.attempt > 0 ? weakness(link) : nil].compactMap(\.self)
        }
    }

    private func waiting(_ link: DaemonStatus.Device) -> [String] {
        guard link.lastHeard == nil else { return [weakness(link)].compactMap(\.self) }
        return [
            "it has not been heard since the daemon was started: switch it on or wake it, and bring it nearer",
            "many devices are silent while something else is connected to them, such as a phone",
            "compare its address \(sources.address) with the device; some change it with each start",
        ]
    }

    private func weakness(_ link: DaemonStatus.Device) -> String? {
        guard let rssi = link.rssi, rssi < -85 else { return nil }
        return "its signal is weak (\(rssi) dBm; below -85 links fail): bring it or the adapter nearer"
    }
}

extension LinkState {
    /// True during a connection attempt and a link.
    fileprivate var holdsLink: Bool {
        switch self {
        case .connecting, .discovering, .preparing, .ready, .disconnecting: true
        case .waiting, .disconnected, .backingOff, .held, .failed: false
        }
    }
}
