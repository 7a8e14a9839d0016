import GattherdBluetooth
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// A session on one link of one device, from resolving the GATT table to the end of the link.
struct LinkSession: Sendable {
    private let link: ServedLink
    private let streams: StreamSubscriber
    private let pairing: SessionPairing
    /// The number of advertisements heard during the session.
    private let sightings: LatestValue<UInt64>
    /// Reports progress to the link machine.
    private let report: @Sendable (LinkSessionProgress) -> Void

    /// - Parameters:
    ///   - link: The link.
    ///   - subscriptions: The subscriptions of this session and its predecessor on the link.
    ///   - sightings: The number of advertisements heard during the session.
    ///   - report: Reports progress to the link machine.
    init(
        on link: ServedLink,
        subscriptions: LinkSubscriptions,
        sightings: LatestValue<UInt64>,
        report: @escaping @Sendable (LinkSessionProgress) -> Void
    ) {
        self.link = link
        streams = StreamSubscriber(link: link, subscriptions: subscriptions)
        pairing = SessionPairing(link: link)
        self.sightings = sightings
        self.report = report
    }

    /// Runs until `replacements` has an element or ends; all its operations have ended when it returns.
    ///
    /// A replaced session leaves its subscriptions to its successor. Without an element the link has ended, or the
    /// device was removed.
    func run(until replacements: AsyncStream<Void>) async {
        let isReplaced = Locked(false)
        let answers = Locked<ResponseAwaiter?>(nil)
        await withTaskGroup { group in
            group.addTask {
                for await _ in replacements { return isReplaced.withLock { $0 = true } }
            }
            group.addTask { await serve(answers) }
            group.addTask {
                if let fault = await pairing.fault() { report(.failed(fault)) }
            }
            await group.next()
            group.cancelAll()
        }
        answers.withLock { $0 }?.close()
        if !isReplaced.withLock({ $0 }) { await streams.release() }
    }

    private func serve(_ answers: Locked<ResponseAwaiter?>) async {
        do throws(LinkFault) {
            let known = try await discover()
            report(.discovered)
            link.context.bonds.requestsBegan(on: link.peripheral, pairedFirst: try await pairing.pair())
            let plan = try await DescriptorReader(link: link).describe(known)
            try plan.checkThatItServes()
            reportUnserved(plan)
            reportUnpolled(plan)
            answers.withLock { $0 = plan.answers }
            let served = try await streams.subscribe(plan)
            link.context.bonds.requestsEnded(on: link.peripheral)
            // The link may have ended meanwhile, or the device may have been removed.
            guard !Task.isCancelled else { return }
            report(.prepared(plan))
            recordDevice(plan)
            await watch(served, plan)
        } catch {
            report(.failed(error))
        }
    }

    private func discover() async throws(LinkFault) -> ProfileAssignment {
        let table: [RemoteCharacteristic]
        do throws(BluetoothError) {
            table = try await link.central.characteristics(of: link.peripheral, timeout: link.context.resolveTimeout)
        } catch {
            throw LinkFault(error, while: "resolving the GATT table")
        }
        // BlueZ also reports services as resolved after a discovery that has failed.
        guard !table.isEmpty else {
            throw LinkFault(.gattError, "bluetoothd has discovered no services, or shows none")
        }
        return try ProfileAssignment(
            candidates: link.context.configuredDevices.profiles(for: link.device.name),
            areChosen: link.device.profileNames != nil,
            table: table
        )
    }

    /// Records the device in history, and does not wait for the disk.
    private func recordDevice(_ plan: ProfileAssignment) {
        let record = DeviceRecord(
            device: link.device.name,
            address: link.device.address.description,
            name: link.context.peripheralName(link.peripheral),
            profiles: plan.profiles.map(\.name)
        )
        link.context.deviceRecorder.record(record, seenAt: link.context.now())
    }

    /// Polls streams, downloads records and probes silent streams, until cancelled or until the link proves dead.
    private func watch(_ served: [ServedStream], _ plan: ProfileAssignment) async {
        await withTaskGroup { group in
            group.addTask { await RecordDownloads(link, plan, served).run() }
            group.addTask {
                if let fault = await StreamPolls(link, plan, served).run() { report(.failed(fault)) }
            }
            for stream in served {
                if let period = stream.planned.pollPeriod { group.addTask { await poll(stream, every: period) } }
            }
            for stream in served where stream.isReserved { group.addTask { await serveWhenReleased(stream) } }
            group.addTask {
                await SilenceMonitor(link: link, sightings: sightings, report: report)
                    .watch(served.filter { !$0.isReserved })
            }
            await group.waitForAll()
        }
        // A session without polled or watched streams lasts as long as its link.
        for await _ in AsyncStream.makeStream(of: Void.self).stream {}
    }

    /// Subscribes to a stream when another program has released it, and then watches it.
    private func serveWhenReleased(_ stream: ServedStream) async {
        do throws(LinkFault) {
            guard let stream = try await streams.subscribeWhenReleased(stream) else { return }
            await SilenceMonitor(link: link, sightings: sightings, report: report).watch([stream])
        } catch {
            guard !Task.isCancelled else { return }
            report(.failed(error))
        }
    }

    /// Polls a stream until cancelled or until the link proves dead.
    private func poll(_ stream: ServedStream, every period: Duration) async {
        var isStalled = false
        while (try? await Task.sleep(for: period, clock: .loop)) != nil {
            do throws(LinkFault) {
                try await streams.read(stream)
                if isStalled { report(.resumed) }
                isStalled = false
            } catch {
                guard !Task.isCancelled else { return }
                guard error.reason == .timedOut else { return report(.failed(error)) }
                guard await !link.central.isResponsive() else {
                    return report(.failed(LinkFault(.silent, error.detail)))
                }
                report(.stalled("\(error.detail); bluetoothd does not answer; the daemon tries again"))
                isStalled = true
            }
        }
    }

    /// Logs once per session the streams whose requests the device has no characteristic for.
    private func reportUnpolled(_ plan: ProfileAssignment) {
        for stream in plan.unpolled {
            let wanted = stream.descriptor.poll.map { "\($0.characteristic)" } ?? ""
            let detail = "it is not polled: the device has no characteristic \(wanted) to write requests to"
            link.log(.warning, "a stream is not polled", [.init("stream", stream.name), .init("detail", detail)])
            link.context.recorder.record(
                device: link.device.name,
                kind: "stream",
                ["stream": .text(stream.name), "error": .text(detail)]
            )
        }
    }

    /// Logs once per session that the device has more characteristics than are served.
    private func reportUnserved(_ plan: ProfileAssignment) {
        guard !plan.unserved.isEmpty else { return }
        let limit = ProfileAssignment.maximumStreams
        let detail = "\(plan.unserved.count) characteristics are not served: a device has \(limit) streams at most"
        link.log(.warning, "a device has too many characteristics", [.init("detail", detail)])
        link.context.recorder.record(device: link.device.name, kind: "stream", ["error": .text(detail)])
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
