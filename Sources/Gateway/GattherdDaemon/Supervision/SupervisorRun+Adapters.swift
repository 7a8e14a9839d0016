import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel

// Effects on adapters.
extension SupervisorRun {
    /// Starts or stops discovery, without a service filter: peripherals need not advertise their services.
    func perform(
        _ effect: DiscoveryMachine.Effect,
        on adapter: BluetoothAddress,
        in group: inout DiscardingTaskGroup
    ) {
        let supervisor = supervisor
        group.addTask {
            do throws(BluetoothError) {
                switch effect {
                case .start: try await supervisor.central.startDiscovery(on: adapter, services: [])
                case .stop: try await supervisor.central.stopDiscovery(on: adapter)
                }
                supervisor.send(.discovery(adapter, ticket: effect.ticket, .done))
            } catch {
                let fields = [LogField("adapter", adapter), LogField("error", error.detail)]
                supervisor.log(.warning, "scanning could not be started or stopped", fields)
                // Busy means that an earlier start or stop in BlueZ is still pending.
                let isAnswered = ![.timedOut, .cancelled, .busy].contains(error.kind)
                supervisor.send(.discovery(adapter, ticket: effect.ticket, isAnswered ? .refused : .missing))
            }
        }
    }

    /// Counts, records and logs a recovery step of an adapter.
    func note(_ remedy: RecoveryLadder.Remedy, _ adapter: BluetoothAddress) {
        supervisor.counters[remedy.step].add()
        supervisor.recorder.record(
            kind: "recovery",
            [
                "adapter": .text(adapter.description),
                "step": .text(remedy.step.rawValue),
                "symptom": .text(remedy.symptom.rawValue),
            ]
        )
        let fields = [
            LogField("adapter", adapter), LogField("step", remedy.step.rawValue),
            LogField("symptom", remedy.symptom.rawValue),
        ]
        supervisor.log(remedy.step == .restartDiscovery ? .info : .warning, "adapter does not work properly", fields)
    }

    /// Publishes an adapter's report and updates the devices that wait for a slot.
    mutating func take(_ report: AdapterReport) {
        let before = Set(supervisor.board.report(of: report.address)?.waiting ?? [])
        supervisor.board.set(report)
        recordFullness(of: report)
        let detail = fullness(of: report) + "; waits for a free slot"
        for name in report.waiting where !before.contains(name) {
            guard var status = supervisor.board.status(of: name) else { continue }
            // A device that has just made room keeps that reason.
            guard status.reason != .rotated else { continue }
            (status.reason, status.detail) = (.adapterFull, detail)
            supervisor.board.set(status)
            supervisor.announcer?.update(status)
        }
    }

    /// Records once that an adapter is full and devices wait, and once that it has room again.
    private mutating func recordFullness(of report: AdapterReport) {
        let isFull = report.isFull && (!report.waiting.isEmpty || full.contains(report.address))
        guard isFull != full.contains(report.address) else { return }
        if isFull { full.insert(report.address) } else { full.remove(report.address) }
        let waiting = report.waiting.joined(separator: ", ")
        let detail = fullness(of: report) + (isFull ? "; waiting: \(waiting)" : "")
        let state = isFull ? "full" : "has room"
        supervisor.recorder.record(kind: "adapter", ["state": .text(state), "detail": .text(detail)])
        supervisor.log(isFull ? .warning : .info, "adapter", [.init("state", state), .init("detail", detail)])
    }

    private func fullness(of report: AdapterReport) -> String {
        let name = supervisor.board.adapters.first { $0.address == report.address }?.name ?? report.address.description
        return "adapter \(name) holds \(report.links)\(report.slots.map { " of \($0)" } ?? "") links"
    }

    func renewSession(in group: inout DiscardingTaskGroup) {
        let supervisor = supervisor
        group.addTask { await supervisor.central.renewSession() }
    }

    /// Switches an adapter off and on; if switching off fails, the adapter stays as it is.
    mutating func powerCycle(_ adapter: BluetoothAddress, in group: inout DiscardingTaskGroup) {
        switching.insert(adapter)
        let supervisor = supervisor
        group.addTask {
            do throws(BluetoothError) {
                try await supervisor.central.setPowered(false, adapter: adapter)
            } catch {
                supervisor.log(.warning, "adapter could not be switched off", [.init("error", error.detail)])
                // Without a reply the adapter may go off later: the machine switches it on after a timeout.
                guard ![.timedOut, .busy, .cancelled].contains(error.kind) else { return }
                return supervisor.send(.powered(adapter, isOn: true))
            }
            supervisor.send(.powered(adapter, isOn: await supervisor.switchOn(adapter)))
        }
    }

    func powerOn(_ adapter: BluetoothAddress, in group: inout DiscardingTaskGroup) {
        let supervisor = supervisor
        group.addTask { supervisor.send(.powered(adapter, isOn: await supervisor.switchOn(adapter))) }
    }
}

extension Supervisor {
    /// Switches an adapter on; returns true on success.
    @discardableResult
    func switchOn(_ adapter: BluetoothAddress) async -> Bool {
        do throws(BluetoothError) {
            try await central.setPowered(true, adapter: adapter)
            return true
        } catch {
            log(.warning, "adapter could not be switched on", [.init("error", error.detail)])
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
