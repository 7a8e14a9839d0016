import GattherdBluetooth
import GattherdLog
import GattherdMachines
import GattherdModel

/// Sends requests to links: connecting and disconnecting.
///
/// The answers go to `send`.
struct LinkRequests: Sendable {
    private let maker: LinkMaker
    private let reporter: LinkReporter
    private let send: @Sendable (SupervisorMachine.Event) -> Void

    init(_ maker: LinkMaker, reporter: LinkReporter, send: @escaping @Sendable (SupervisorMachine.Event) -> Void) {
        self.maker = maker
        self.reporter = reporter
        self.send = send
    }

    /// Requests a link, and calls `ended` after the answer.
    func connect(
        _ link: PeripheralID,
        of device: String,
        ticket: Int,
        in group: inout DiscardingTaskGroup,
        ended: @escaping @Sendable () -> Void
    ) {
        group.addTask { [maker, send] in
            do throws(LinkFault) {
                try await maker.connect(link)
                send(.link(device: device, .connected(ticket: ticket)))
            } catch {
                send(.link(device: device, .failed(error, ticket: ticket)))
            }
            ended()
        }
    }

    func disconnect(_ link: PeripheralID?, of device: String, ticket: Int, in group: inout DiscardingTaskGroup) {
        group.addTask { [maker, reporter, send] in
            do throws(BluetoothError) {
                if let link { try await maker.central.disconnect(link) }
            } catch {
                let fields = [LogField("device", device), LogField("error", error.detail)]
                reporter.log(.warning, "disconnecting failed", fields)
            }
            send(.link(device: device, .disconnected(ticket: ticket)))
        }
    }

    /// Disconnects links and publishes their ends: the loop that would do so has ended.
    func end(_ links: [(device: String, link: PeripheralID)]) async {
        await withDiscardingTaskGroup { group in
            for (device, link) in links where reporter.status.link(of: device)?.state.mayHoldLink == true {
                group.addTask { await end(link, of: device) }
            }
        }
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
