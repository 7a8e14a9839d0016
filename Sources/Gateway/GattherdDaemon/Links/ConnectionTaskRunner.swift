import GattherdBluetooth
import GattherdModel
import GattherdSync

/// Runs the connection tasks of profiles.
struct ConnectionTaskRunner: Sendable {
    let link: ServedLink
    let subscriptions: LinkSubscriptions

    /// Returns the key of the subscription that a responding characteristic needs.
    static func key(of answering: RemoteCharacteristic) -> LinkSubscriptions.Key {
        LinkSubscriptions.Key(remote: answering, path: .signals, isAnswer: true)
    }

    /// The error of a characteristic that cannot respond.
    private static let silence = BluetoothError(
        .notSupported,
        "it does not notify; name the characteristic that responds in 'answer', as 'uuid'"
    )

    /// Subscribes to the responses of control points, before anything is written to them.
    func subscribe(_ plan: ProfileAssignment) async throws(LinkFault) {
        for remote in plan.answering {
            let key = Self.key(of: remote)
            let token = subscriptions.token(of: key) ?? link.intake.newToken()
            plan.answers.bind(token, to: remote)
            do throws(BluetoothError) {
                guard remote.properties.isNotifying else { throw Self.silence }
                try await link.central.subscribe(to: remote, by: key.path, token: token, sink: plan.answers)
                subscriptions.add(key, token)
            } catch {
                subscriptions.remove(key)
                let isRequired = plan.requires(remote)
                let action = "subscribing to \(remote.uuid)"
                try link.tolerate(error, isRequired: isRequired, isSubscribing: true, while: action)
            }
        }
    }

    /// Executes the tasks of the profiles in order.
    func run(_ tasks: [ProfileAssignment.Task]) async throws(LinkFault) {
        for task in tasks {
            guard case .write(let template, let isAcknowledged, _) = task.task.action else { continue }
            do throws(BluetoothError) {
                try await run(task, octets(of: task, template), isAcknowledged)
            } catch {
                try link.tolerate(error, isRequired: task.task.isRequired, while: "writing to \(task.remote.uuid)")
            }
        }
    }

    /// Returns the bytes to write now.
    private func octets(
        of task: ProfileAssignment.Task,
        _ template: WriteTemplate
    ) throws(BluetoothError) -> [UInt8] {
        if let resumed = resumed(task) { return resumed }
        return try template.octets(at: link.context.now())
    }

    /// Returns the bytes to write if an earlier value of the device allows to resume the task.
    private func resumed(_ task: ProfileAssignment.Task) -> [UInt8]? {
        guard let rule = task.task.resume else { return nil }
        let catalogue = link.context.catalogue
        let progress = catalogue.progress(device: link.device.name, profile: task.profile.name, rule)
        return progress.newest.withLock { $0 }.flatMap { rule.octets(after: $0) }
    }

    private func run(
        _ task: ProfileAssignment.Task,
        _ octets: [UInt8],
        _ isAcknowledged: Bool
    ) async throws(BluetoothError) {
        guard let exchange = task.exchange else {
            return try await link.central.write(octets, to: task.remote, withResponse: isAcknowledged)
        }
        let response = try await exchange.awaiter.response(to: exchange.rule, of: exchange.remote) {
            () async throws(BluetoothError) in
            try await link.central.write(octets, to: task.remote, withResponse: isAcknowledged)
        }
        switch response {
        case .success: return
        case .refusal(let reason): throw BluetoothError(.notPermitted, "the device says: \(reason)")
        case nil where Task.isCancelled: throw BluetoothError(.cancelled, "cancelled")
        case nil: throw BluetoothError(.notSupported, "no answer within \(exchange.rule.timeout)")
        }
    }
}
