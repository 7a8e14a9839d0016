import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import Synchronization

/// A session on one link of one device, from resolving the GATT table to the end of the link.
struct LinkSession: Sendable {
    let device: SupervisedDevice
    let peripheral: PeripheralID
    let sessionContext: LinkSessionContext
    /// The subscriptions of this session and its predecessor on the link.
    let subscriptions: LinkSubscriptions
    let log: Log
    /// The number of advertisements heard during the session.
    let doubts: LatestValue<UInt64>
    /// Reports progress to the link machine.
    let report: @Sendable (LinkSessionProgress) -> Void

    private var central: any CentralBackend { sessionContext.central }
    private var intake: Intake { sessionContext.intake }

    /// Runs until `end` has an element or ends; all its operations have ended when it returns.
    ///
    /// A replaced session leaves its subscriptions to its successor.
    func run(until end: AsyncStream<LinkSessionEnd>) async {
        let isReplaced = Locked(false)
        let answers = Locked<ResponseAwaiter?>(nil)
        await withTaskGroup { group in
            group.addTask {
                for await reason in end { return isReplaced.withLock { $0 = reason == .replaced } }
            }
            group.addTask { await serve(answers) }
            group.addTask { await watchPairing() }
            await group.next()
            group.cancelAll()
        }
        answers.withLock { $0 }?.close()
        if !isReplaced.withLock({ $0 }) { await release() }
    }

    private func serve(_ answers: Locked<ResponseAwaiter?>) async {
        do throws(LinkFault) {
            let known = try await discover()
            report(.discovered)
            sessionContext.bonds.asking(peripheral, pairedFirst: try await pair())
            let plan = try await describe(known)
            try plan.checkThatItServes()
            reportUnserved(plan)
            answers.withLock { $0 = plan.answers }
            let streams = try await prepare(plan)
            sessionContext.bonds.served(peripheral)
            await recordDevice(plan)
            // The link may have ended meanwhile, or the device may have been removed.
            guard !Task.isCancelled else { return }
            report(.prepared(plan))
            await watch(streams)
        } catch {
            report(.failed(error))
        }
    }

    private func discover() async throws(LinkFault) -> ProfileAssignment {
        let table: [RemoteCharacteristic]
        do throws(BluetoothError) {
            table = try await central.characteristics(of: peripheral, timeout: sessionContext.resolveTimeout)
        } catch {
            throw LinkFault(error, while: "resolving the GATT table")
        }
        return try ProfileAssignment(
            candidates: sessionContext.configuredDevices.profiles(for: device.name),
            areChosen: device.profileNames != nil,
            table: table
        )
    }

    /// Records the device in history.
    private func recordDevice(_ plan: ProfileAssignment) async {
        let record = DeviceRecord(
            device: device.name,
            address: device.address.description,
            name: sessionContext.peripheralName(peripheral),
            profiles: plan.profiles.map(\.name)
        )
        do throws(StoreFault) {
            try await sessionContext.store.record(record, seenAt: sessionContext.now())
        } catch {
            log(.warning, "the device could not be recorded in history", [.init("history.error", error.detail)])
        }
    }

    /// A stream in service.
    struct Served: Sendable {
        let planned: ProfileAssignment.Stream
        let binding: StreamBinding
        /// The binding for requested values: the same stream with another source.
        let readBinding: StreamBinding

        var isReadFirst: Bool { planned.descriptor.isReadFirst }
    }

    /// Subscribes, runs the connection tasks, then reads: no change is missed between a read and its subscription.
    ///
    /// Values that other streams need for decoding are read before those streams can notify.
    private func prepare(_ plan: ProfileAssignment) async throws(LinkFault) -> [Served] {
        let decoders = subscriptions.assignDecoders(to: plan.streams, next: sessionContext.catalogue.newSession)
        let echoes = Set(plan.controls.compactMap(\.descriptor.echo))
        var served: [Served] = []
        for stream in plan.streams {
            let session = decoders[stream.decoder] ?? 0
            let wantsEcho = stream.isFirst && echoes.contains(stream.name)
            served.append(serve(stream, session: session, wantsEcho: wantsEcho, plan.resumption(from: stream)))
        }
        await endSubscriptions(except: served.compactMap(key) + plan.answering.map(key))
        for stream in served where stream.isReadFirst {
            try await subscribe(stream)
            try await read(stream)
        }
        for stream in served where !stream.isReadFirst { try await subscribe(stream) }
        try await listen(plan)
        intake.unbind([], sessions: subscriptions.takeRetiredDecoders())
        try await carryOut(plan.tasks)
        for stream in served where stream.planned.descriptor.isReadAtConnect && !stream.isReadFirst {
            try await read(stream)
        }
        return served
    }

    private func serve(
        _ stream: ProfileAssignment.Stream,
        session: Int,
        wantsEcho: Bool,
        _ resume: ResumeRule?
    ) -> Served {
        let definition = sessionContext.catalogue.stream(device: device.name, stream)
        let progress = resume.map {
            sessionContext.catalogue.progress(device: device.name, profile: stream.profile.name, $0)
        }
        let echo = wantsEcho ? sessionContext.catalogue.echo(device: device.name, stream: definition.stream) : nil
        func binding(_ source: ReadingSource) -> StreamBinding {
            StreamBinding(
                stream: definition,
                profile: stream.profile,
                characteristic: stream.index,
                session: session,
                source: source,
                meter: device.meter,
                echo: echo,
                progress: progress
            )
        }
        let isIndicated = !stream.remote.properties.contains(.notify) && stream.remote.properties.contains(.indicate)
        let source: ReadingSource = isIndicated || stream.descriptor.subscription == .indicate ? .indicate : .notify
        return Served(planned: stream, binding: binding(source), readBinding: binding(.read))
    }

    /// Returns the key of the subscription that a stream needs; `nil` if it is polled or read at each connection.
    private func key(of stream: Served) -> LinkSubscriptions.Key? {
        let (descriptor, remote) = (stream.planned.descriptor, stream.planned.remote)
        guard descriptor.subscription == .notify || descriptor.subscription == .indicate else { return nil }
        let isReadInstead = descriptor.isReadAtConnect && remote.properties.isReadable
        guard remote.properties.isNotifying || !isReadInstead else { return nil }
        let path: NotificationPath = device.usesSocket ?? descriptor.prefersSocket ? .socket : .signals
        return LinkSubscriptions.Key(remote: remote, path: path, isAnswer: false)
    }

    /// Subscribes to a stream, or takes over the subscription of the previous session.
    private func subscribe(_ stream: Served) async throws(LinkFault) {
        guard let key = key(of: stream) else { return }
        let token = subscriptions.token(of: key) ?? intake.newToken()
        intake.bind(stream.binding, to: token)
        do throws(BluetoothError) {
            try await central.subscribe(to: key.remote, by: key.path, token: token, sink: intake)
            subscriptions.add(key, token)
        } catch {
            subscriptions.remove(key)
            intake.unbind([token], sessions: [])
            try tolerate(error, stream, while: "subscribing to \(stream.planned.descriptor.uuid)")
        }
    }

    /// Ends the subscriptions of the previous session that this session does not need.
    private func endSubscriptions(except wanted: [LinkSubscriptions.Key]) async {
        let ended = subscriptions.retain(Set(wanted))
        let remotes = Set(wanted.map(\.remote))
        for (key, token) in ended {
            if remotes.contains(key.remote), let stream = intake.stream(of: token) {
                sessionContext.noteInterruption(stream, "it is subscribed by \(key.path.other) from now on")
            }
            await unsubscribe(token)
        }
        intake.unbind(Array(ended.values), sessions: [])
    }

    private func unsubscribe(_ token: SubscriptionToken) async {
        do throws(BluetoothError) {
            try await central.unsubscribe(token)
        } catch {
            log(.debug, "unsubscribing failed", [.init("error", error.detail)])
        }
    }

    private func read(_ stream: Served) async throws(LinkFault) {
        guard stream.planned.remote.properties.isReadable else { return }
        do throws(BluetoothError) {
            let octets = try await central.read(stream.planned.remote)
            intake.receive(octets, for: stream.readBinding, at: sessionContext.now())
        } catch {
            try tolerate(error, stream, while: "reading \(stream.planned.descriptor.uuid)")
        }
    }

    private func tolerate(_ error: BluetoothError, _ stream: Served, while action: String) throws(LinkFault) {
        let name = stream.binding.stream.stream
        let isRequired = stream.planned.isFirst && stream.planned.descriptor.isRequired
        try tolerate(error, isRequired: isRequired, of: name, while: action)
    }

    /// Ignores the failure of an optional operation unless it affects the whole link.
    func tolerate(
        _ error: BluetoothError,
        isRequired: Bool,
        of stream: String? = nil,
        while action: String
    ) throws(LinkFault) {
        let fault = sessionContext.bonds.fault(error, of: peripheral, while: action)
        let isUnpaired = error.kind == .authentication && !sessionContext.bonds.isPaired(peripheral)
        let isLinkProblem = !error.isAboutAttribute || isUnpaired
        guard !isLinkProblem, !isRequired else { throw fault }
        let what: StaticString = stream == nil ? "a task failed" : "a stream is not served"
        log(.warning, what, [.init("action", action), .init("error", error.detail)])
        sessionContext.recorder.record(
            device: device.name,
            kind: stream == nil ? "task" : "stream",
            ["stream": stream.map { .text($0) }, "error": .text("\(action): \(error.detail)")]
        )
    }

    /// Polls streams and probes silent ones, until cancelled or until the link proves dead.
    private func watch(_ streams: [Served]) async {
        await withTaskGroup { group in
            for stream in streams {
                if let period = stream.planned.pollPeriod { group.addTask { await poll(stream, every: period) } }
            }
            group.addTask { await watchSilence(of: streams) }
            await group.waitForAll()
        }
        // A session without polled or watched streams lasts as long as its link.
        for await _ in AsyncStream.makeStream(of: Void.self).stream {}
    }

    /// Polls a stream until cancelled or until the link proves dead.
    private func poll(_ stream: Served, every period: Duration) async {
        var isStalled = false
        while (try? await Task.sleep(for: period, clock: .loop)) != nil {
            do throws(LinkFault) {
                try await read(stream)
                if isStalled { report(.resumed) }
                isStalled = false
            } catch {
                guard !Task.isCancelled else { return }
                guard error.reason == .timedOut else { return report(.failed(error)) }
                guard await !sessionContext.central.isResponsive() else {
                    return report(.failed(LinkFault(.silent, error.detail)))
                }
                report(.stalled("\(error.detail); bluetoothd does not answer; the daemon tries again"))
                isStalled = true
            }
        }
    }

    private func release() async {
        let all = subscriptions.takeAll()
        for token in all.tokens { await unsubscribe(token) }
        intake.unbind(all.tokens, sessions: all.decoders)
    }

    /// Logs once per session that the device has more characteristics than are served.
    private func reportUnserved(_ plan: ProfileAssignment) {
        guard !plan.unserved.isEmpty else { return }
        let limit = ProfileAssignment.mostStreams
        let detail = "\(plan.unserved.count) characteristics are not served: a device has \(limit) streams at most"
        log(.warning, "a device has too many characteristics", [.init("detail", detail)])
        sessionContext.recorder.record(device: device.name, kind: "stream", ["error": .text(detail)])
    }
}

extension NotificationPath {
    /// The name of the other notification path, for people.
    fileprivate var other: String {
        switch self {
        case .signals: "a socket"
        case .socket: "signals"
        }
    }
}

/// The progress of a link session.
enum LinkSessionProgress: Sendable {
    case discovered
    case prepared(ProfileAssignment)
    /// The state of the link is unknown because bluetoothd does not answer.
    case stalled(String)
    case resumed
    case failed(LinkFault)
}

extension BluetoothError {
    /// True if the error affects only the characteristic and not the link.
    var isAboutAttribute: Bool {
        switch kind {
        case .unknownAttribute, .authentication, .notSupported, .notPermitted, .invalidLength, .invalidOffset, .att:
            true
        case .adapterUnavailable, .serviceUnavailable, .unknownPeripheral, .notConnected, .connectionFailed, .busy,
            .timedOut, .cancelled, .accessDenied, .invalidValue, .other:
            false
        }
    }
}

extension CharacteristicProperties {
    /// True if reading is allowed, or if the platform did not report the properties.
    var isReadable: Bool { isEmpty || contains(.read) }
    var isNotifying: Bool { isEmpty || !isDisjoint(with: [.notify, .indicate]) }
}
