import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync

/// State, responses and events on their way to the broker.
extension MQTTDelivery {
    /// The maximum number of unanswered packets besides readings.
    private static let window = 16
    /// The maximum number of unanswered packets during clean-up, so that responses always have room.
    private static let cleanUpWindow = 8
    /// The pause before the next sweep if there were too many retained messages.
    private static let sweepPause = Duration.seconds(1)
    /// The number of removed devices whose late messages are cleared as well.
    static let maximumRemoved = 500

    func take(_ changes: DeliveryInbox) {
        if let json = changes.info {
            info = json
            tell(.info)
        }
        if let addresses = changes.enrolled {
            // If devices were only added, the broker retains nothing out of date.
            let isSweepDue = enrolled.map { $0.contains { addresses[$0.key] != $0.value } } ?? true
            enrolled = addresses
            if isSweepDue { tell(.sweep) }
        }
        for (device, change) in changes.devices {
            if change.isRemoved { forget(device) }
            if let status = change.status { note(status) }
        }
        for description in changes.descriptions.values { note(description) }
        for event in changes.events where !outbox.append(event: event.json) { counters.eventsDropped.add() }
        pumpOutbox()
    }

    private func note(_ status: LinkStatus) {
        let device = status.device
        devices[device] = status
        if removed.contains(device) { recordSuccessor(device) }
        tell(.connection(device: device))
        if link?.availabilities[device] != status.isOnline { tell(.availability(device: device)) }
    }

    /// Handles a new device with a removed device's name: the broker may still send messages of the old one.
    private func recordSuccessor(_ device: String) {
        stopSeeking(device)
        guard let link, link.isConnected else { return _ = successors.insert(device) }
        link.successors.insert(device)
    }

    private func stopSeeking(_ device: String) {
        guard let index = removed.firstIndex(of: device) else { return }
        removed.remove(at: index)
        tell(.stopSeeking(device: device))
    }

    /// Queues a state in the current session; the next session starts with all states.
    func tell(_ state: PublishQueue.State) {
        if link?.isConnected == true { outbox.append(state) }
    }

    func forget(_ device: String) {
        devices[device] = nil
        removed.removeAll { $0 == device }
        removed.append(device)
        if removed.count > Self.maximumRemoved { stopSeeking(removed[0]) }
        successors.remove(device)
        link?.successors.remove(device)
        link?.availabilities[device] = nil
        filter.forget(device)
        step(.dismissed(device: device))
        if let description = descriptions.removeValue(forKey: device) {
            tell(.cleared(topic: home.topic(of: description.address)))
        }
        clear(device)
    }

    /// Clears the retained messages of a removed device.
    ///
    /// Further messages are cleared as the broker sends them. The availability goes last: another run finds leftovers
    /// by it.
    private func clear(_ device: String) {
        guard link?.isConnected == true else { return }
        // The next sweep finds the device again.
        guard outbox.hasCleanUpRoom else {
            outbox.dropCleanUp()
            return removed.removeAll { $0 == device }
        }
        tell(.seek(device: device))
        tell(.cleared(topic: topics.connection(device)))
        tell(.cleared(topic: topics.availability(device)))
    }

    /// Starts a session: queues all retained states, then the subscriptions, then `online`.
    func open() {
        outbox.append(.info)
        for device in devices.keys.sorted() {
            outbox.append(.connection(device: device))
            outbox.append(.availability(device: device))
        }
        for device in descriptions.keys.sorted() { outbox.append(.discovery(device: device)) }
        for device in removed { clear(device) }
        for device in successors {
            outbox.append(.seek(device: device))
            outbox.append(.stopSeeking(device: device))
        }
        link?.successors = successors
        successors = []
        if enrolled != nil { outbox.append(.sweep) }
        if settings.homeAssistant.isDiscoverable { outbox.append(.awaitBirth) }
        outbox.append(.subscribe)
        outbox.append(.online)
        pumpOutbox()
    }

    func publishOffline() {
        link?.isLeaving = true
        for device in devices.keys.sorted() { outbox.append(.availability(device: device)) }
        outbox.append(.offline)
        pumpOutbox()
    }

    /// Handles the refusal of a packet other than a reading; a busy broker gets the state again later.
    func refused(_ content: PacketsInFlight.Content, _ reason: MQTTReason) {
        switch content {
        case .response(let response): refused(response, reason)
        case .state(let state): refused(state, reason)
        case .subscription, .other: narrateRefusal(reason)
        }
    }

    private func refused(_ state: PublishQueue.State, _ reason: MQTTReason) {
        narrateRefusal(reason)
        if let topic = topics(of: state).first, refusals[topic] != nil { return hold(state, on: topic) }
        guard let session = link?.session, case .busy = reason.verdict else { return }
        loop.schedule(after: settings.options.retryPause) { [weak self] in
            self?.assumeIsolated { $0.publishAgain(state, session) }
        }
    }

    private func publishAgain(_ state: PublishQueue.State, _ session: Int) {
        guard link?.session == session, link?.isLeaving == false else { return }
        switch state {
        case .availability(let device): link?.availabilities[device] = nil
        case .cleared(let topic): if let device = topics.device(topic), devices[device] != nil { return }
        default: break
        }
        tell(state)
        pumpOutbox()
    }

    func post(_ answer: MQTTResponse) {
        if isFinished || !outbox.responses.append(answer) { drop(answer) }
        pumpOutbox()
    }

    /// Publishes a refused response later if the broker is busy, or else on the gateway's own topic.
    private func refused(_ response: MQTTResponse, _ reason: MQTTReason) {
        if case .busy = reason.verdict, let again = response.again { return delay(again) }
        if response.isOnChosenTopic {
            counters.messagesRefused.add()
            suspendChosenTopics(reason.words)
        } else {
            narrateRefusal(reason)
        }
        guard let own = response.onOwnTopic else { return drop(response) }
        outbox.responses.putBack([own])
        pumpOutbox()
    }

    private func delay(_ response: MQTTResponse) {
        let pause = settings.options.retryPause
        outbox.responses.putBack(response, due: now + pause)
        loop.schedule(after: pause) { [weak self] in self?.assumeIsolated { $0.pumpOutbox() } }
    }

    /// Drops a response for lack of room: the broker accepts no messages, or too many requests arrived.
    private func drop(_ answer: MQTTResponse) {
        counters.answersDropped.add()
        guard deliveryLogger.mayLog(of: .answers, at: now) else { return }
        record(["state": .text("answers_dropped"), "topic": .text(answer.topic)])
        log(
            .error,
            "responses to requests are dropped: the broker refuses them, or too many wait to be published",
            [.init("mqtt.topic", answer.topic), .init("answers.dropped", counters.answersDropped.value)]
        )
    }

    /// Publishes the queued messages that have room.
    func pumpOutbox() {
        guard link?.isConnected == true else { return }
        outbox.responses.endPauses(at: now)
        while let link, link.connection.isClear, hasRoom(link), let item = nextItem(link) {
            do throws(MQTTRefusal) {
                try publish(item)
            } catch {
                dropUnpublished(item, error)
            }
            flushLink()
        }
        openDespiteDeferral()
        continueCleanUp()
        armAnswerTimer()
        watchLink()
    }

    private func nextItem(_ link: BrokerLink) -> PublishQueue.Item? {
        let isSearching = refusals.deferralEnd != nil
        return outbox.next(isCleanUpAllowed: link.others.count < Self.cleanUpWindow) { state in
            isSearching && topics(of: state).contains { refusals.defers($0, at: now) }
        }
    }

    /// Marks the session as open although `online` is deferred, so that readings do not wait for it.
    private func openDespiteDeferral() {
        guard let link, outbox.contains(.online), refusals.defers(topics.state, at: now) else { return }
        step(.opened(session: link.session))
    }

    /// Sweeps again when the queued clean-up is done and some was dropped.
    private func continueCleanUp() {
        guard outbox.takeIncompleteCleanUp(), let session = link?.session else { return }
        loop.schedule(after: Self.sweepPause) { [weak self] in
            self?.assumeIsolated {
                guard $0.link?.session == session else { return }
                $0.tell(.sweep)
                $0.pumpOutbox()
            }
        }
    }

    /// True if another packet may be sent; during the search for a refused topic, one at a time.
    private func hasRoom(_ link: BrokerLink) -> Bool {
        guard refusals.isCautious else { return link.others.count < Self.window }
        return link.others.isEmpty && link.readings.isEmpty
    }

    /// The topics and filters of the packets for a state.
    private func topics(of state: PublishQueue.State) -> [String] {
        switch state {
        case .info: [topics.info]
        case .connection(let device): [topics.connection(device)]
        case .availability(let device): [topics.availability(device)]
        case .discovery(let device): descriptions[device].map { [home.topic(of: $0.address)] } ?? []
        case .subscribe: [topics.sets, topics.requests]
        case .awaitBirth: [home.status]
        case .sweep: [topics.availabilities, home.all]
        case .cleared(let topic): [topic]
        case .seek(let device): [topics.all(of: device)]
        case .stopSeeking: []
        case .online, .offline: [topics.state]
        }
    }

    /// Drops a message that could not be written, and logs it if the next session does not repair it.
    private func dropUnpublished(_ item: PublishQueue.Item, _ error: MQTTRefusal) {
        let name: String
        switch item {
        case .state(let state): name = "\(state)"
        case .response(let response):
            if case .busy = error.verdict { return delay(response) }
            counters.answersDropped.add()
            name = response.topic
        case .event:
            counters.eventsDropped.add()
            name = topics.event
        }
        let isForGood = if case .refused = error.verdict { true } else { false }
        let level: LogLevel = isForGood && deliveryLogger.mayLog(of: .unpublished, at: now) ? .warning : .debug
        log(level, "a message could not be published", [.init("mqtt.message", name), .init("mqtt.error", error)])
    }

    private func publish(_ item: PublishQueue.Item) throws(MQTTRefusal) {
        switch item {
        case .state(let state): try publish(state)
        case .response(let response): try publish(response)
        case .event(let json):
            if try publish(json, to: topics.event, .other, .transientMessage) == nil { counters.eventsDropped.add() }
        }
    }

    private func publish(_ response: MQTTResponse) throws(MQTTRefusal) {
        let response = areChosenTopicsRefused ? response.onOwnTopic ?? response : response
        let properties = MessageProperties(correlation: response.correlation)
        let origin: TopicRefusals.Origin = response.isOnChosenTopic ? .chosenTopic : .message
        let mid = try publish(response.payload, to: response.topic, .response(response), origin, properties)
        if mid == nil { drop(response) }
    }

    private func publish(_ state: PublishQueue.State) throws(MQTTRefusal) {
        switch state {
        case .info: if let info { try retain(info, at: topics.info, isJSON: true, state) }
        case .connection(let device):
            guard let status = devices[device] else { return }
            try retain(
                JSONWriter.bytes { status.writeJSON(to: &$0) },
                at: topics.connection(device),
                isJSON: true,
                state
            )
        case .availability(let device): try publishAvailability(of: device, state)
        case .discovery(let device):
            guard let description = descriptions[device].map(permitted) else { return }
            try retain(home.payload(for: description), at: home.topic(of: description.address), isJSON: true, state)
        case .subscribe:
            try subscribe(to: topics.sets, .requests, state)
            try subscribe(to: topics.requests, .requests, state)
        case .awaitBirth: try subscribe(to: home.status, .news, state)
        case .sweep:
            try subscribe(to: topics.availabilities, .leftovers, state)
            try subscribe(to: home.all, .leftovers, state)
        case .cleared(let topic): if !isInUse(topic) { try retain([], at: topic, state) }
        case .seek(let device): try subscribe(to: topics.all(of: device), .leftovers, state)
        case .stopSeeking(let device): try link?.unsubscribe(from: topics.all(of: device), at: now)
        case .online:
            try retain(Array("online".utf8), at: topics.state, state)
            if let session = link?.session { step(.opened(session: session)) }
        case .offline:
            let mid = try retain(Array("offline".utf8), at: topics.state, state)
            link?.farewell = mid
            if mid == nil, let session = link?.session { step(.offlinePublished(session: session)) }
        }
    }

    /// True if a topic to be cleared carries the state of a device that was added meanwhile.
    private func isInUse(_ topic: String) -> Bool {
        if let device = topics.device(topic), devices[device] != nil {
            return [topics.connection(device), topics.availability(device)].contains(topic)
        }
        return descriptions.values.contains { home.topic(of: $0.address) == topic }
    }

    private func subscribe(
        to filter: String,
        _ interest: BrokerLink.Interest,
        _ state: PublishQueue.State
    ) throws(MQTTRefusal) {
        guard refusals.admits(filter, at: now) else { return hold(state, on: filter) }
        guard let mid = try link?.subscribe(to: filter, interest, at: now) else { return }
        refusals.sent(filter, identifier: mid, .subscription)
    }

    private func publishAvailability(of device: String, _ state: PublishQueue.State) throws(MQTTRefusal) {
        guard let status = devices[device], let link else { return }
        let isOnline = status.isOnline && !link.isLeaving
        self.link?.availabilities[device] = isOnline
        try retain(Array((isOnline ? "online" : "offline").utf8), at: topics.availability(device), state)
    }

    @discardableResult
    private func retain(
        _ payload: [UInt8],
        at topic: String,
        isJSON: Bool = false,
        _ state: PublishQueue.State
    ) throws(MQTTRefusal) -> UInt16? {
        guard refusals.admits(topic, at: now) else {
            hold(state, on: topic)
            return nil
        }
        let origin: TopicRefusals.Origin = payload.isEmpty ? .transientMessage : .message
        let isRetained = link?.canRetain == true
        return try publish(payload, to: topic, .state(state), origin, .init(isJSON: isJSON), isRetained: isRetained)
    }

    /// Publishes a message unless its topic is set aside; returns its identifier.
    private func publish(
        _ payload: [UInt8],
        to topic: String,
        _ content: PacketsInFlight.Content,
        _ origin: TopicRefusals.Origin,
        _ properties: MessageProperties = .init(),
        isRetained: Bool = false
    ) throws(MQTTRefusal) -> UInt16? {
        guard origin == .chosenTopic || content.isState || refusals.admits(topic, at: now) else { return nil }
        let packet = PublishPacket(topic: topic, payload: payload[...], isRetained: isRetained, properties: properties)
        guard let mid = try link?.connection.publish(packet, qos: 1) else { return nil }
        link?.others.add(mid, content, on: topic, at: now)
        refusals.sent(topic, identifier: mid, origin)
        return mid
    }
}

extension LifecycleEvent {
    /// The JSON object for the `event` topic.
    var json: [UInt8] {
        JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("ts")
            writer.timestamp(time)
            writer.key("device")
            writer.optional(device) { $0.string($1) }
            writer.key("kind")
            writer.string(kind)
            writer.key("detail")
            writer.raw(detail.utf8)
            writer.endObject()
        }
    }
}
