import GattherdBluetooth
import GattherdModel
import GattherdSync

extension LinkSession {
    /// Returns the key of the subscription that a responding characteristic needs.
    func key(of answering: RemoteCharacteristic) -> LinkSubscriptions.Key {
        LinkSubscriptions.Key(remote: answering, path: .signals, isAnswer: true)
    }

    /// Subscribes to the responses of control points, before anything is written to them.
    func listen(_ plan: ProfileAssignment) async throws(LinkFault) {
        for remote in plan.answering {
            let key = key(of: remote)
            let token = subscriptions.token(of: key) ?? sessionContext.intake.newToken()
            plan.answers.bind(token, to: remote)
            do throws(BluetoothError) {
                try await sessionContext.central.subscribe(to: remote, by: key.path, token: token, sink: plan.answers)
                subscriptions.add(key, token)
            } catch {
                subscriptions.remove(key)
                try tolerate(error, isRequired: plan.requires(remote), while: "subscribing to \(remote.uuid)")
            }
        }
    }

    /// Executes the tasks of the profiles in order.
    func carryOut(_ tasks: [ProfileAssignment.Task]) async throws(LinkFault) {
        for task in tasks {
            guard case .write(let octets, let isAcknowledged, _) = task.task.action else { continue }
            do throws(BluetoothError) {
                try await carryOut(task, resumed(task) ?? octets, isAcknowledged)
            } catch {
                try tolerate(error, isRequired: task.task.isRequired, while: "writing to \(task.remote.uuid)")
            }
        }
    }

    /// Returns the bytes to write if an earlier value of the device allows to resume the task.
    private func resumed(_ task: ProfileAssignment.Task) -> [UInt8]? {
        guard let rule = task.task.resume else { return nil }
        let catalogue = sessionContext.catalogue
        let progress = catalogue.progress(device: device.name, profile: task.profile.name, rule)
        return progress.newest.withLock { $0 }.flatMap { rule.octets(after: $0) }
    }

    private func carryOut(
        _ task: ProfileAssignment.Task,
        _ octets: [UInt8],
        _ isAcknowledged: Bool
    ) async throws(BluetoothError) {
        let central = sessionContext.central
        guard let exchange = task.exchange else {
            return try await central.write(octets, to: task.remote, withResponse: isAcknowledged)
        }
        let verdict = try await exchange.awaiter.verdict(by: exchange.rule, of: exchange.remote) {
            () async throws(BluetoothError) in
            try await central.write(octets, to: task.remote, withResponse: isAcknowledged)
        }
        switch verdict {
        case .success: return
        case .refusal(let reason): throw BluetoothError(.notPermitted, "the device says: \(reason)")
        case nil: throw BluetoothError(.notSupported, "no answer within \(exchange.rule.timeout)")
        }
    }
}
