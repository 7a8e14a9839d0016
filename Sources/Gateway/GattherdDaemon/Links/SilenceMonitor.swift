import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import Synchronization

/// Watches the streams of a link for silence, and probes the link.
struct SilenceMonitor: Sendable {
    let link: ServedLink
    /// The number of advertisements heard during the session.
    let sightings: LatestValue<UInt64>
    /// Reports progress to the link machine.
    let report: @Sendable (LinkSessionProgress) -> Void

    /// Executes the actions of the silence watch until cancelled or until the link proves dead.
    func watch(_ streams: [ServedStream]) async {
        let watched = WatchedStreams(streams, link.device)
        let catalogue = link.context.catalogue
        var watch = SilenceWatch(
            watched.limits.enumerated().map { index, limit in
                (limit, index < streams.count ? catalogue.silence(of: streams[index].binding.stream) : .init())
            },
            policy: link.context.silence,
            at: now
        )
        defer {
            for (stream, memory) in zip(streams, watch.memories) {
                catalogue.setSilence(memory, of: stream.binding.stream)
            }
        }
        var seenSightings: UInt64 = 0
        while await sleep(as: watch, watched, orSightingBeyond: seenSightings) {
            watch.count(watched.counts, at: now)
            let newest = sightings.state
            if newest != seenSightings { watch.doubt(at: now) }
            seenSightings = newest
            guard let step = watch.next(at: now), !Task.isCancelled else { continue }
            guard await perform(step, &watch, watched) else { return }
        }
    }

    /// The monotonic time of all link sessions.
    private var now: Duration { SuspendingClock.now - link.context.start }

    /// Sleeps until a stream has values or a step is due, or until the peripheral is heard advertising.
    ///
    /// - Returns: False if cancelled.
    private func sleep(as watch: SilenceWatch, _ watched: WatchedStreams, orSightingBeyond seen: UInt64) async -> Bool {
        await withTaskGroup { group in
            group.addTask { await sleep(as: watch, watched) }
            group.addTask { for await count in sightings.watch() where count != seen { return } }
            await group.next()
            group.cancelAll()
        }
        return !Task.isCancelled
    }

    /// Sleeps until counting values can change the state.
    private func sleep(as watch: SilenceWatch, _ watched: WatchedStreams) async {
        repeat {
            let pause = watch.deadline(at: now) - now
            guard (try? await Task.sleep(for: pause, clock: .loop)) != nil else { return }
        } while watch.isIdle(watched.counts, at: now)
    }

    /// Executes one action; returns false when the session is over.
    private func perform(
        _ step: SilenceWatch.Step,
        _ watch: inout SilenceWatch,
        _ watched: WatchedStreams
    ) async -> Bool {
        switch step {
        case .probe(let stream):
            let start = now
            let outcome = await probe(watched.stream(stream))
            watch.count(watched.counts, at: now)
            let next = watch.probed(outcome, stream: stream, since: start, at: now)
            guard let next, !Task.isCancelled else { return !Task.isCancelled }
            return await perform(next, &watch, watched)
        case .recycle(let stream, let silence, let cause):
            report(.failed(LinkFault(.silent, watched.words(stream, silence) + cause.words)))
            return false
        case .stall(let stream, let silence):
            report(.stalled(watched.words(stream, silence) + "; bluetoothd does not answer; the daemon tries again"))
        case .resume: report(.resumed)
        }
        return true
    }

    // MARK: - Probes

    /// The target of a probe's read.
    private enum Target {
        /// The Client Characteristic Configuration descriptor: each notifying stream has one, and reads have no side
        /// effect.
        case subscription(RemoteDescriptor)
        case value(RemoteCharacteristic)
    }

    /// Characteristics that are static in a device and need no pairing.
    private static let harmless: [BluetoothUUID] = [0x2A19, 0x2A00, 0x2A29, 0x2A24, 0x2A26, 0x2A01]

    /// Sends the peripheral a request that needs a response.
    private func probe(_ stream: ServedStream?) async -> SilenceWatch.Outcome {
        link.context.silenceProbes.add()
        link.log(.debug, "a silent link is probed")
        guard await link.central.isResponsive() else { return .serviceUnanswered }
        do throws(BluetoothError) {
            switch await target(stream) {
            case .subscription(let descriptor):
                let octets = try await link.central.read(descriptor)
                let isOurs = stream?.planned.remote == descriptor.characteristic
                return .answered(isSubscribed: !isOurs || octets.isEmpty || octets.contains { $0 != 0 })
            case .value(let characteristic): _ = try await link.central.read(characteristic)
            case nil: break
            }
            return .answered(isSubscribed: true)
        } catch {
            return error.isAnswer ? .answered(isSubscribed: true) : .unanswered
        }
    }

    /// The limit for reading the GATT table of a link that is up.
    ///
    /// A table that is changing takes longer.
    private static let tableLimit = Duration.seconds(5)

    /// Returns the best target; `nil` if nothing is readable or the table is being resolved again.
    private func target(_ stream: ServedStream?) async -> Target? {
        guard let services = try? await link.central.services(of: link.peripheral, timeout: Self.tableLimit) else {
            return nil
        }
        let subscriptions = services.flatMap(\.descriptors).filter { $0.uuid == 0x2902 }
        let own = subscriptions.first { $0.characteristic == stream?.planned.remote }
        if let descriptor = own ?? subscriptions.first { return .subscription(descriptor) }
        let readable = services.flatMap(\.characteristics).filter { $0.properties.contains(.read) }
        let harmless = Self.harmless.lazy.compactMap { uuid in readable.first { $0.uuid == uuid } }.first
        return (harmless ?? stream.map(\.planned.remote).flatMap { $0.properties.isReadable ? $0 : nil }).map {
            .value($0)
        }
    }
}

/// The streams of a link session as the silence watch counts them.
private struct WatchedStreams: Sendable {
    private let streams: [ServedStream]
    let limits: [SilenceLimit]

    /// Creates the streams; a link without a subscription is watched as a whole, unless the device disables the watch.
    init(_ streams: [ServedStream], _ device: SupervisedDevice) {
        self.streams = streams
        let own = streams.map { stream in
            stream.isSubscribed
                ? device.silence.limit(of: stream.planned.name, stream.planned.descriptor, stream.poll) : .never
        }
        let isWatched = streams.contains(where: \.isSubscribed) || device.silence.all == .never
        limits = own + (isWatched ? [] : [.learned])
    }

    /// The number of values of each stream, notified and read.
    var counts: [UInt64] {
        streams.map { stream in
            let notified = stream.binding.values.load(ordering: .relaxed)
            return notified &+ stream.readBinding.values.load(ordering: .relaxed)
        }
    }

    func stream(_ index: Int) -> ServedStream? { streams.indices.contains(index) ? streams[index] : nil }

    /// Returns text for people: the silent stream and the duration.
    func words(_ index: Int, _ silence: Duration) -> String {
        let seconds = max(1, silence.components.seconds)
        return stream(index).map { "no \($0.planned.name) for \(seconds) s" } ?? "no answer for \(seconds) s"
    }
}

extension SilenceWatch.Cause {
    /// Text for people, appended to the silent stream.
    fileprivate var words: String {
        switch self {
        case .noAnswer: ", and its link does not answer"
        case .forgottenSubscription: ", and the device has forgotten the subscription"
        case .limit: ", longer than its limit"
        }
    }
}

extension BluetoothError {
    /// True if the peripheral has responded, even with an error.
    fileprivate var isAnswer: Bool {
        // BlueZ 5.66 reports this code also for requests without a response.
        if kind == .att(0x0E) { return false }
        return isAboutAttribute || kind == .busy
    }
}
