import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines

/// Sends requests to adapters: discovery, power, a new bus connection.
///
/// The answers go to `send`.
struct AdapterRequests {
    private let central: any CentralBackend
    private let log: Log
    private let send: @Sendable (SupervisorMachine.Event) -> Void
    /// The adapters that are being power-cycled.
    private var cycling: Set<BluetoothAddress> = []

    init(_ central: any CentralBackend, log: Log, send: @escaping @Sendable (SupervisorMachine.Event) -> Void) {
        self.central = central
        self.log = log
        self.send = send
    }

    /// Starts or stops discovery, without a service filter: peripherals need not advertise their services.
    func perform(
        _ effect: DiscoveryMachine.Effect,
        on adapter: BluetoothAddress,
        in group: inout DiscardingTaskGroup
    ) {
        group.addTask { [central, log, send] in
            do throws(BluetoothError) {
                switch effect {
                case .start: try await central.startDiscovery(on: adapter)
                case .stop: try await central.stopDiscovery(on: adapter)
                }
                send(.discovery(adapter, ticket: effect.ticket, .done))
            } catch {
                let fields = [LogField("adapter", adapter), LogField("error", error.detail)]
                log(.warning, "scanning could not be started or stopped", fields)
                // Busy means that an earlier start or stop in BlueZ is still pending.
                let isAnswered = ![.timedOut, .cancelled, .busy].contains(error.kind)
                send(.discovery(adapter, ticket: effect.ticket, isAnswered ? .refused : .missing))
            }
        }
    }

    func reconnectToBus(in group: inout DiscardingTaskGroup) {
        group.addTask { [central] in await central.reconnectToBus() }
    }

    /// Switches an adapter off and on; if switching off fails, the adapter stays as it is.
    mutating func powerCycle(_ adapter: BluetoothAddress, in group: inout DiscardingTaskGroup) {
        cycling.insert(adapter)
        group.addTask { [self] in
            do throws(BluetoothError) {
                try await central.setPowered(false, adapter: adapter)
            } catch {
                let fields = [LogField("adapter", adapter), LogField("error", error.detail)]
                log(.warning, "the adapter could not be switched off", fields)
                // Without a reply the adapter may go off later: the machine switches it on after a timeout.
                guard ![.timedOut, .busy, .cancelled].contains(error.kind) else { return }
                return send(.powered(adapter, isOn: true))
            }
            send(.powered(adapter, isOn: await switchOn(adapter)))
        }
    }

    func powerOn(_ adapter: BluetoothAddress, in group: inout DiscardingTaskGroup) {
        group.addTask { [self] in send(.powered(adapter, isOn: await switchOn(adapter))) }
    }

    /// Records that an adapter is on again after a power cycle.
    mutating func poweredOn(_ adapter: BluetoothAddress) {
        cycling.remove(adapter)
    }

    /// Switches on the adapters whose power cycle has not ended, all at once: bluetoothd may hang.
    func finishPowerCycles() async {
        await withDiscardingTaskGroup { group in
            for adapter in cycling { group.addTask { _ = await switchOn(adapter) } }
        }
    }

    /// Switches an adapter on; returns true on success.
    private func switchOn(_ adapter: BluetoothAddress) async -> Bool {
        do throws(BluetoothError) {
            try await central.setPowered(true, adapter: adapter)
            return true
        } catch {
            let fields = [LogField("adapter", adapter), LogField("error", error.detail)]
            log(.warning, "the adapter could not be switched on", fields)
            return false
        }
    }
}

extension DiscoveryMachine.Effect {
    fileprivate var ticket: Int {
        switch self {
        case .start(let ticket), .stop(let ticket): ticket
        }
    }
}
