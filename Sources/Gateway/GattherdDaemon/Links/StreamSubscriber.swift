import GattherdBluetooth
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import Synchronization

/// A stream in service.
struct ServedStream: Sendable {
    let planned: ProfileAssignment.Stream
    let binding: StreamBinding
    /// The binding for requested values: the same stream with another source.
    let readBinding: StreamBinding
    /// The binding for the messages of a download; `nil` if the stream has no records.
    let messageBinding: StreamBinding?
    /// True while another program has reserved the characteristic's notifications.
    var isReserved = false

    var isReadFirst: Bool { planned.descriptor.isReadFirst }

    /// The requests that the stream's values answer; `nil` if the device is not asked.
    var poll: PollRule? { binding.answers == nil ? nil : planned.descriptor.poll }

    /// True if the peripheral sends values of the stream by itself.
    var isSubscribed: Bool {
        let mode = planned.descriptor.subscription
        return (mode == .notify || mode == .indicate) && planned.remote.properties.isNotifying
    }
}

/// Subscribes to the streams of a link, and reads them.
struct StreamSubscriber: Sendable {
    let link: ServedLink
    /// The subscriptions of this session and its predecessor on the link.
    let subscriptions: LinkSubscriptions
    private let stuck: StuckNotifications

    init(link: ServedLink, subscriptions: LinkSubscriptions) {
        (self.link, self.subscriptions) = (link, subscriptions)
        stuck = StuckNotifications(link)
    }

    /// Subscribes, runs the connection tasks, then reads: no change is missed between a read and its subscription.
    ///
    /// Values that other streams need for decoding are read before those streams can notify.
    func subscribe(_ plan: ProfileAssignment) async throws(LinkFault) -> [ServedStream] {
        let decoders = subscriptions.assignDecoders(to: plan.streams, next: link.context.catalogue.makeDecoderID)
        let echoes = Set(plan.controls.compactMap(\.descriptor.echo))
        var served: [ServedStream] = []
        let polled = Set(plan.polls.map(\.name))
        for stream in plan.streams {
            let decoder = decoders[stream.decoder] ?? 0
            let wantsEcho = stream.isFirst && echoes.contains(stream.name)
            let answers = polled.contains(stream.name) ? LatestValue<UInt64>(0) : nil
            served.append(serve(stream, decoder: decoder, wantsEcho: wantsEcho, answers, plan.resumption(from: stream)))
        }
        await endSubscriptions(except: served.compactMap(key) + plan.answering.map(ConnectionTaskRunner.key))
        for index in served.indices where served[index].isReadFirst {
            served[index].isReserved = try await !subscribe(served[index])
            try await read(served[index])
        }
        for index in served.indices where !served[index].isReadFirst {
            served[index].isReserved = try await !subscribe(served[index])
        }
        let tasks = ConnectionTaskRunner(link: link, subscriptions: subscriptions)
        try await tasks.subscribe(plan)
        link.intake.unbind([], decoders: subscriptions.removeRetiredDecoders())
        try await tasks.run(plan.tasks)
        for stream in served where stream.planned.descriptor.isReadAtConnect && !stream.isReadFirst {
            try await read(stream)
        }
        return served
    }

    private func serve(
        _ stream: ProfileAssignment.Stream,
        decoder: Int,
        wantsEcho: Bool,
        _ answers: LatestValue<UInt64>?,
        _ resume: ResumeRule?
    ) -> ServedStream {
        let definition = link.context.catalogue.stream(device: link.device.name, stream)
        let progress = resume.map {
            link.context.catalogue.progress(device: link.device.name, profile: stream.profile.name, $0)
        }
        let echo = wantsEcho ? link.context.catalogue.echo(device: link.device.name, stream: definition.stream) : nil
        let records = link.context.catalogue.records(of: link.device, stream)
        func binding(_ source: ReadingSource, isMessage: Bool = false) -> StreamBinding {
            StreamBinding(
                stream: definition,
                profile: stream.profile,
                characteristic: stream.index,
                decoder: decoder,
                source: source,
                meter: link.device.meter,
                echo: echo,
                progress: progress,
                records: records,
                isMessage: isMessage,
                answers: answers
            )
        }
        let isIndicated = !stream.remote.properties.contains(.notify) && stream.remote.properties.contains(.indicate)
        let source: ReadingSource = isIndicated || stream.descriptor.subscription == .indicate ? .indicate : .notify
        return ServedStream(
            planned: stream,
            binding: binding(source),
            readBinding: binding(.read),
            messageBinding: records == nil ? nil : binding(source, isMessage: true)
        )
    }

    /// Returns the key of the subscription that a stream needs; `nil` if it is polled or read at each connection.
    private func key(of stream: ServedStream) -> LinkSubscriptions.Key? {
        let (descriptor, remote) = (stream.planned.descriptor, stream.planned.remote)
        guard descriptor.subscription == .notify || descriptor.subscription == .indicate else { return nil }
        let isReadInstead = descriptor.isReadAtConnect && remote.properties.isReadable
        guard remote.properties.isNotifying || !isReadInstead else { return nil }
        let isSocket = link.device.usesSocket ?? descriptor.prefersSocket
        let path: NotificationPath = isSocket && stuck.allowsSocket(stream.planned.name) ? .socket : .signals
        return LinkSubscriptions.Key(remote: remote, path: path, isAnswer: false)
    }

    /// Subscribes to a stream, or takes over the subscription of the previous session.
    ///
    /// Returns false if another program has reserved the notifications, which is reported unless it was before. Even
    /// a required stream does not end the link then: the other program uses it.
    private func subscribe(_ stream: ServedStream) async throws(LinkFault) -> Bool {
        guard let key = key(of: stream) else { return true }
        let token = subscriptions.token(of: key) ?? link.intake.newToken()
        link.intake.bind(stream.binding, to: token)
        do throws(BluetoothError) {
            try await subscribe(key, token)
            subscriptions.add(key, token)
            stuck.recordSuccess(of: stream.planned.name)
            return true
        } catch {
            subscriptions.remove(key)
            link.intake.unbind([token], decoders: [])
            let action = "subscribing to \(stream.planned.descriptor.uuid)"
            try stuck.record(error, of: stream.planned.name, while: action)
            let isReserved = error.kind == .busy
            guard !isReserved || !stream.isReserved else { return false }
            try tolerate(error, stream, isSubscribing: true, while: action)
            return !isReserved
        }
    }

    /// Subscribes by the path of the key; a socket is not possible while another program receives signals.
    private func subscribe(_ key: LinkSubscriptions.Key, _ token: SubscriptionToken) async throws(BluetoothError) {
        do throws(BluetoothError) {
            try await link.central.subscribe(to: key.remote, by: key.path, token: token, sink: link.intake)
        } catch {
            guard key.path == .socket, error.kind == .busy else { throw error }
            try await link.central.subscribe(to: key.remote, by: .signals, token: token, sink: link.intake)
        }
    }

    /// Tries to subscribe to a reserved stream until it succeeds, or fails for another reason.
    func subscribeWhenReleased(_ stream: ServedStream) async throws(LinkFault) -> ServedStream? {
        while (try? await Task.sleep(for: link.context.reservedRetry, clock: .loop)) != nil {
            guard try await subscribe(stream) else { continue }
            guard key(of: stream).flatMap(subscriptions.token(of:)) != nil else { return nil }
            link.log(.info, "a stream is served now", [.init("stream", stream.planned.name)])
            var stream = stream
            stream.isReserved = false
            return stream
        }
        return nil
    }

    /// Ends the subscriptions of the previous session that this session does not need.
    private func endSubscriptions(except wanted: [LinkSubscriptions.Key]) async {
        let ended = subscriptions.retain(Set(wanted))
        let remotes = Set(wanted.map(\.remote))
        for (key, token) in ended {
            if remotes.contains(key.remote), let stream = link.intake.stream(of: token) {
                link.context.recordInterruption(stream, "it is subscribed by \(key.path.other) from now on")
            }
            await unsubscribe(token)
        }
        link.intake.unbind(Array(ended.values), decoders: [])
    }

    private func unsubscribe(_ token: SubscriptionToken) async {
        do throws(BluetoothError) {
            try await link.central.unsubscribe(token)
        } catch {
            link.log(.debug, "unsubscribing failed", [.init("error", error.detail)])
        }
    }

    /// Reads a stream once, if it is readable.
    func read(_ stream: ServedStream) async throws(LinkFault) {
        guard stream.planned.remote.properties.isReadable else { return }
        do throws(BluetoothError) {
            let octets = try await link.central.read(stream.planned.remote)
            link.intake.receive(octets, for: stream.readBinding, at: link.context.now())
        } catch {
            try tolerate(error, stream, while: "reading \(stream.planned.descriptor.uuid)")
        }
    }

    private func tolerate(
        _ error: BluetoothError,
        _ stream: ServedStream,
        isSubscribing: Bool = false,
        while action: String
    ) throws(LinkFault) {
        let name = stream.binding.stream.stream
        let isReserved = isSubscribing && [.busy, .notificationsStuck].contains(error.kind)
        let isRequired = stream.planned.isFirst && stream.planned.descriptor.isRequired && !isReserved
        try link.tolerate(error, isRequired: isRequired, isSubscribing: isSubscribing, of: name, while: action)
    }

    /// Ends all subscriptions and decoders of the link, and removes a peripheral that can only be served after that.
    func release() async {
        let all = subscriptions.removeAll()
        for token in all.tokens { await unsubscribe(token) }
        link.intake.unbind(all.tokens, decoders: all.decoders)
        await stuck.endLink()
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

extension CharacteristicProperties {
    /// True if reading is allowed, or if the platform did not report the properties.
    var isReadable: Bool { isEmpty || contains(.read) }
    var isNotifying: Bool { isEmpty || !isDisjoint(with: [.notify, .indicate]) }
    var isWritable: Bool { isEmpty || !isDisjoint(with: [.write, .writeWithoutResponse]) }
}
