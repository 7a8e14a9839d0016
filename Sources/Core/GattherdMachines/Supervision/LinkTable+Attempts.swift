import GattherdGATT
import GattherdModel

// Statistics of attempts and links.
extension LinkTable {
    /// The time within which a full controller refuses a connection; a peripheral out of reach takes longer.
    private static let suddenLimit = Duration.milliseconds(1500)
    /// The age of an advertisement up to which its device counts as in reach.
    private static let reachLimit = Duration.seconds(10)

    /// Updates adapter statistics after a state change of a link.
    mutating func recordTransition(_ change: LinkChange, of name: String, at now: Duration) {
        guard let address = devices[name]?.adapter else { return }
        switch (change.from, change.to) {
        case (_, .connecting):
            devices[name]?.startAttempt(at: now)
        case (.connecting, .discovering):
            // A bluetoothd that still believes in a dead link may answer only because of that.
            guard devices[name]?.deadLink?.adapter != address else { break }
            let links = links(on: address)
            adapters[address]?.slots.accepted(links: links)
            adapters[address]?.ladder.connected()
        case (.discovering, .backingOff) where change.reason == .authentication:
            devices[name]?.countFailure(on: address)
        case (.discovering, .backingOff), (.preparing, .backingOff):
            recordSessionFailure(change.reason, of: name, on: address, at: now)
        case (.connecting, .backingOff), (.connecting, .failed):
            recordFailure(change.reason ?? .unknown, of: name, on: address, at: now)
        case (.ready, .ready): break
        case (.ready, _) where change.reason == .silent: recordSilence(of: name, on: address, at: now)
        case (_, .ready):
            devices[name]?.becameReady(on: address)
            adapters[address]?.ladder.connected()
        default: break
        }
    }

    /// The adapter's likely reason for a refusal, for display.
    func suspicion(of name: String, after change: LinkChange) -> String? {
        guard change.to == .backingOff, let address = devices[name]?.refusedBy else { return nil }
        return adapters[address]?.slots.suspectedLimit.map { "adapter \(address) may be full with \($0) links" }
    }

    /// Counts an unanswered link session against the adapter if the device's last link proved dead there.
    private mutating func recordSessionFailure(
        _ reason: LinkReason?,
        of name: String,
        on address: BluetoothAddress,
        at now: Duration
    ) {
        guard devices[name]?.deadLink?.adapter == address, reason == .timedOut || reason == .silent else { return }
        adapters[address]?.ladder.failed(at: now)
    }

    /// Records a silent link; if all of an adapter's links are silent, the adapter is at fault.
    private mutating func recordSilence(of name: String, on address: BluetoothAddress, at now: Duration) {
        devices[name]?.proveDead(on: address, at: now)
        let isAlone = !devices.values.contains { $0.adapter == address && $0.link.state == .ready }
        let dead = devices.values.compactMap(\.deadLink).filter { $0.adapter == address }
        let recent = dead.count { now - $0.since < recovery.silence }
        if isAlone, recent > 1 { adapters[address]?.ladder.stalled() }
    }

    private mutating func recordFailure(
        _ reason: LinkReason,
        of name: String,
        on address: BluetoothAddress,
        at now: Duration
    ) {
        guard let device = devices[name], let attempt = device.attempt, let adapter = adapters[address] else { return }
        devices[name]?.countFailure(on: address)
        let links = links(on: address)
        let isSudden = reason == .connectFailed && !attempt.hasSeenLink && now - attempt.since < Self.suddenLimit
        if isSudden {
            adapters[address]?.slots.refused(name, links: links, at: now)
            devices[name]?.refused(by: address)
        }
        let wasInReach = device.lastHeard.map { $0 > attempt.since - Self.reachLimit } ?? false
        let isAdaptersFault =
            switch reason {
            case .busy: true
            case .timedOut: wasInReach || adapter.ladder.hearsNothing(at: now)
            case .connectFailed, .unknown: isSudden && links == 0
            default: false
            }
        if isAdaptersFault { adapters[address]?.ladder.failed(at: now) }
    }
}
