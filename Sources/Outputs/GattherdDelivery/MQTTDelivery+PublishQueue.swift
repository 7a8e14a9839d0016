import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync

/// State, answers and events on their way to the broker.
extension MQTTDelivery {
    /// Messages besides readings that may be unacknowledged at once.
    private static let window = 16
    /// Of so many devices that were removed what comes late is cleared as well.
    static let maximumRemoved = 500

    func take(_ news: DeliveryInbox) {
        if let json = news.info {
            info = json
            tell(.info)
        }
        if let addresses = news.enrolled {
            // Where devices only came, nothing that the broker has is out of date.
            let isSweepDue = enrolled.map { $0.contains { addresses[$0.key] != $0.value } } ?? true
            enrolled = addresses
            if isSweepDue { tell(.sweep) }
        }
        for (device, change) in news.devices {
            if change.isRemoved { forget(device) }
            if let status = change.status { note(status) }
        }
        for description in news.descriptions.values { note(description) }
        for event in news.events where !outbox.append(event: event.json) { counters.eventsDropped.add() }
        pumpOutbox()
    }

    private func note(_ status: LinkStatus) {
        let device = status.device
        devices[device] = status
        if removed.contains(device) { succeed(device) }
        tell(.connection(device: device))
        if link?.availabilities[device] != status.isOnline { tell(.availability(device: device)) }
    }

    /// A device has the name of one that was removed; what the broker was asked for it may still tell.
    private func succeed(_ device: String) {
        stopSeeking(device)
        guard let link, link.isConnected else { return _ = successors.insert(device) }
        link.successors.insert(device)
    }

    private func stopSeeking(_ device: String) {
        guard let index = removed.firstIndex(of: device) else { return }
        removed.remove(at: index)
        tell(.stopSeeking(device: device))
    }

    /// Queues a state of the present session; the next one begins with all of them.
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

    /// What the broker tells of the device is cleared as it comes; the availability, by which another run would know
    /// that something is left, goes last of what is known.
    private func clear(_ device: String) {
        tell(.seek(device: device))
        tell(.cleared(topic: topics.connection(device)))
        tell(.cleared(topic: topics.availability(device)))
    }

    /// A session begins: all that is retained, then the subscriptions, then `online`.
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

    func sayFarewell() {
        link?.isLeaving = true
        for device in devices.keys.sorted() { outbox.append(.availability(device: device)) }
        outbox.append(.offline)
        pumpOutbox()
    }

    /// What is not a reading was refused; state that the broker only has no room for now is told again.
    func refused(_ state: PublishQueue.State?, _ reason: MQTTReason) {
        narrateRefusal(reason)
        guard let state, let session = link?.session, case .busy = reason.verdict else { return }
        loop.schedule(after: settings.options.retryPause) { [weak self] in
            self?.assumeIsolated { $0.tellAgain(state, session) }
        }
    }

    private func tellAgain(_ state: PublishQueue.State, _ session: Int) {
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
        if !outbox.append(answer) { drop(answer) }
        pumpOutbox()
    }

    /// A broker that takes no messages, or a flood of requests, leaves no room for more answers.
    private func drop(_ answer: MQTTResponse) {
        counters.answersDropped.add()
        guard narrator.mayTell(of: .answers, at: now) else { return }
        record(["state": .text("answers_dropped"), "topic": .text(answer.topic)])
        log(
            .error,
            "answers to requests are dropped: too many wait to be published; send requests more slowly",
            [.init("mqtt.topic", answer.topic), .init("answers.dropped", counters.answersDropped.value)]
        )
    }

    /// Publishes what there is room for.
    func pumpOutbox() {
        guard link?.isConnected == true else { return }
        while let link, link.connection.isClear, hasRoom(link), let item = outbox.next() {
            do throws(MQTTRefusal) {
                try publish(item)
            } catch {
                lose(item, error)
            }
            flushLink()
        }
        watchLink()
    }

    /// While a refused topic is searched for, packets go out one at a time.
    private func hasRoom(_ link: BrokerLink) -> Bool {
        guard refusals.isCautious else { return link.others.count < Self.window }
        return link.others.isEmpty && link.subscriptions.isEmpty && link.readings.isEmpty
    }

    /// What was not a reading is not tried again; what the next session does not mend is said.
    private func lose(_ item: PublishQueue.Item, _ error: MQTTRefusal) {
        let name: String
        switch item {
        case .state(let state): name = "\(state)"
        case .answer(_, let answer):
            counters.answersDropped.add()
            name = answer.topic
        case .event:
            counters.eventsDropped.add()
            name = topics.event
        }
        let isForGood = if case .refused = error.verdict { true } else { false }
        let level: LogLevel = isForGood && narrator.mayTell(of: .unpublished, at: now) ? .warning : .debug
        log(level, "a message could not be published", [.init("mqtt.message", name), .init("mqtt.error", error)])
    }

    private func publish(_ item: PublishQueue.Item) throws(MQTTRefusal) {
        switch item {
        case .state(let state): try publish(state)
        case .answer(let payload, let answer):
            let mid = try publish(payload, to: answer.topic, .init(correlation: answer.correlation))
            if mid == nil { counters.answersDropped.add() }
        case .event(let json): if try publish(json, to: topics.event) == nil { counters.eventsDropped.add() }
        }
    }

    private func publish(_ state: PublishQueue.State) throws(MQTTRefusal) {
        switch state {
        case .info: if let info { try retain(info, at: topics.info, isJSON: true, state) }
        case .connection(let device):
            guard let status = devices[device] else { return }
            try retain(
                JSONWriter.octets { status.writeJSON(to: &$0) },
                at: topics.connection(device),
                isJSON: true,
                state
            )
        case .availability(let device): try publishAvailability(of: device, state)
        case .discovery(let device):
            guard let description = descriptions[device].map(permitted) else { return }
            try retain(home.payload(for: description), at: home.topic(of: description.address), isJSON: true, state)
        case .subscribe:
            try subscribe(to: topics.sets, .requests)
            try subscribe(to: topics.requests, .requests)
        case .awaitBirth: try subscribe(to: home.status, .news)
        case .sweep:
            try subscribe(to: topics.availabilities, .leftovers)
            try subscribe(to: home.all, .leftovers)
        case .cleared(let topic): try retain([], at: topic, state)
        case .seek(let device): try subscribe(to: topics.all(of: device), .leftovers)
        case .stopSeeking(let device):
            try link?.connection.unsubscribe(from: topics.all(of: device))
        case .online:
            try retain(Array("online".utf8), at: topics.state, state)
            if let session = link?.session { step(.opened(session: session)) }
        case .offline:
            let mid = try retain(Array("offline".utf8), at: topics.state, state)
            link?.farewell = mid
            if mid == nil, let session = link?.session { step(.farewellSaid(session: session)) }
        }
    }

    private func subscribe(to filter: String, _ interest: BrokerLink.Interest) throws(MQTTRefusal) {
        guard refusals.admits(filter, at: now), let mid = try link?.subscribe(to: filter, interest) else { return }
        refusals.sent(filter, identifier: mid, recurs: true)
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
        let isRetained = link?.canRetain == true
        let mid = try publish(payload, to: topic, .init(isJSON: isJSON), retained: isRetained, recurs: !payload.isEmpty)
        if let mid { link?.states[mid] = state }
        return mid
    }

    /// Publishes a message unless its topic is set aside; gives its identifier.
    private func publish(
        _ payload: [UInt8],
        to topic: String,
        _ properties: MessageProperties = .init(),
        retained: Bool = false,
        recurs: Bool = false
    ) throws(MQTTRefusal) -> UInt16? {
        guard refusals.admits(topic, at: now) else { return nil }
        let packet = PublishPacket(topic: topic, payload: payload[...], isRetained: retained, properties: properties)
        guard let mid = try link?.connection.publish(packet, qos: 1) else { return nil }
        link?.others.insert(mid)
        refusals.sent(topic, identifier: mid, recurs: recurs)
        return mid
    }
}

extension LifecycleEvent {
    /// The object of the `event` topic.
    var json: [UInt8] {
        JSONWriter.octets { writer in
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
