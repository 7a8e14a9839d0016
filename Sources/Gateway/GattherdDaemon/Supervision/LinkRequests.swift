import GattherdBluetooth
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// Sends requests to links: connecting and disconnecting.
///
/// The answers go to `send`.
struct LinkRequests: Sendable {
    private let maker: LinkMaker
    private let reporter: LinkReporter
    private let send: @Sendable (SupervisorMachine.Event) -> Void
    /// The running attempt of each device.
    private let attempts = Locked<[String: LinkAttempt]>([:])
    /// The links that are still up because the end of the supervisor cancelled their disconnects, by device.
    private let unended = Locked<[String: PeripheralID]>([:])

    init(_ maker: LinkMaker, reporter: LinkReporter, send: @escaping @Sendable (SupervisorMachine.Event) -> Void) {
        self.maker = maker
        self.reporter = reporter
        self.send = send
    }

    /// Requests a link, and calls `ended` after the answer.
    ///
    /// An attempt that goes on although its adapter was removed is cancelled first: at its deadline it would end the
    /// new link. bluetoothd never answers the attempt of an object that it has removed.
    func connect(
        _ link: PeripheralID,
        of device: String,
        ticket: Int,
        in group: inout DiscardingTaskGroup,
        ended: @escaping @Sendable () -> Void
    ) {
        let attempt = LinkAttempt()
        let previous = attempts.withLock { $0.updateValue(attempt, forKey: device) }
        group.addTask { [maker, send, attempts] in
            await previous?.cancel()
            switch await attempt.run({ () throws(LinkFault) in try await maker.connect(link) }) {
            case .success: send(.link(device: device, .connected(ticket: ticket)))
            case .failure(let fault): send(.link(device: device, .failed(fault, ticket: ticket)))
            }
            attempts.withLock { if $0[device] === attempt { $0[device] = nil } }
            ended()
        }
    }

    /// Ends a link, after the device's attempt has ended: otherwise the attempt could make a link that stays.
    func disconnect(_ link: PeripheralID?, of device: String, ticket: Int, in group: inout DiscardingTaskGroup) {
        let attempt = attempts.withLock { $0[device] }
        group.addTask { [maker, reporter, send, unended] in
            await attempt?.cancel()
            do throws(BluetoothError) {
                if let link { try await maker.central.disconnect(link) }
            } catch {
                if error.kind == .cancelled { unended.withLock { $0[device] = link } }
                let fields = [LogField("device", device), LogField("error", error.detail)]
                reporter.log(.warning, "disconnecting failed", fields)
            }
            send(.link(device: device, .disconnected(ticket: ticket)))
        }
    }

    /// Disconnects links and publishes their ends: the loop that would do so has ended.
    func end(_ links: [(device: String, link: PeripheralID)]) async {
        let unended = unended.withLock { $0 }
        let held = links.filter { unended[$0.device] == nil && mayHoldLink($0.device) }
        await withDiscardingTaskGroup { group in
            for (device, link) in held + unended.map({ ($0.key, $0.value) }) {
                group.addTask { await end(link, of: device) }
            }
        }
    }

    private func mayHoldLink(_ device: String) -> Bool {
        reporter.status.link(of: device)?.state.mayHoldLink == true
    }

    private func end(_ link: PeripheralID, of device: String) async {
        do throws(BluetoothError) {
            try await maker.central.disconnect(link)
        } catch {
            reporter.log(.debug, "disconnecting failed", [.init("error", error.detail)])
        }
        guard var ended = reporter.status.link(of: device) else { return }
        (ended.state, ended.since) = (.disconnected, reporter.now())
        (ended.reason, ended.detail, ended.nextRetry) = (.requested, "gattherd has stopped", nil)
        reporter.update(ended)
    }
}

extension LinkState {
    /// True while BlueZ may hold a link of the daemon.
    fileprivate var mayHoldLink: Bool {
        switch self {
        case .connecting, .discovering, .preparing, .ready, .disconnecting: true
        case .waiting, .disconnected, .backingOff, .held, .failed: false
        }
    }
}

/// An attempt to connect, which may be cancelled.
private final class LinkAttempt: Sendable {
    private enum State: Sendable {
        case running, cancelled, ended
    }

    private let state = LatestValue(State.running)

    /// Runs `body` until it ends or the attempt is cancelled.
    func run(_ body: @escaping @Sendable () async throws(LinkFault) -> Void) async -> Result<Void, LinkFault> {
        defer { state.set(.ended) }
        return await withTaskGroup(of: Result<Void, LinkFault>?.self) { [state] group in
            group.addTask {
                do throws(LinkFault) { return .success(try await body()) } catch { return .failure(error) }
            }
            group.addTask {
                for await state in state.watch() where state == .cancelled { break }
                return nil
            }
            var outcome: Result<Void, LinkFault>?
            for await result in group {
                outcome = result ?? outcome
                group.cancelAll()
            }
            return outcome ?? .failure(LinkFault(.local, "cancelled"))
        }
    }

    /// Cancels the attempt and waits for its end.
    func cancel() async {
        state.update { if $0 == .running { $0 = .cancelled } }
        for await state in state.watch() where state == .ended { return }
    }
}
