import GattherdBluetooth
import GattherdDaemon
import GattherdDelivery
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdSync

/// Executes the requests of outputs, once the gateway has started.
final class RequestRouter: Sendable {
    private struct Dependencies: Sendable {
        let gateway: Gateway
        let outputs: [any Output]
        let started: Timestamp
    }

    private let dependencies = Locked<Dependencies?>(nil)
    private let history: ReadingHistory
    private let historyService: HistoryService

    /// The maximum number of history requests by MQTT at once; each may hold a few megabytes.
    private static let maximumHistoryRequests = 2

    init(history: ReadingHistory, path: String) {
        self.history = history
        historyService = HistoryService(path: path, maximum: Self.maximumHistoryRequests)
    }

    /// Starts carrying requests out.
    func open(_ gateway: Gateway, _ outputs: [any Output], started: Timestamp) {
        dependencies.withLock { $0 = Dependencies(gateway: gateway, outputs: outputs, started: started) }
    }

    func set(_ request: ControlRequest) async -> Result<ControlValue, ControlError> {
        guard let dependencies = dependencies.withLock({ $0 }) else {
            return .failure(.notReady(device: request.device))
        }
        return await dependencies.gateway.supervisor.controls.set(request)
    }

    func answer(_ request: BridgeRequest) async -> Result<BridgeReply, BridgeFailure> {
        guard let dependencies = dependencies.withLock({ $0 }) else {
            return .failure(BridgeFailure("not started yet"))
        }
        do throws(ControlError) {
            switch request {
            case .connect(let device): try await dependencies.gateway.supervisor.connect(device)
            case .disconnect(let device): try await dependencies.gateway.supervisor.disconnect(device)
            case .history(let request): return await historyService.answer(request)
            case .health: return .success(BridgeReply(Self.health(dependencies, history)))
            }
            return .success(BridgeReply(Array("{}".utf8)))
        } catch {
            return .failure(BridgeFailure(error.description))
        }
    }

    /// Records an event of a part of the gateway.
    ///
    /// An event with a member `device` is an event of that device, so that `why` shows it.
    func record(kind: String, _ members: KeyValuePairs<String, SampleValue?>) {
        var device: String?
        if case .text(let name)?? = members.first(where: { $0.key == "device" })?.value { device = name }
        dependencies.withLock { $0 }?.gateway.recorder.record(device: device, kind: kind, members)
    }

    /// The payload of the retained topic `bridge/health`; `nil` before the start.
    var health: [UInt8]? { dependencies.withLock { $0 }.map { Self.health($0, history) } }

    private static func health(_ dependencies: Dependencies, _ history: ReadingHistory) -> [UInt8] {
        let live = dependencies.gateway.supervisor.status
        return JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("version")
            writer.string(GattherdVersion.current)
            writer.key("started")
            writer.timestamp(dependencies.started)
            let numbers: KeyValuePairs = [
                "adapters": Int64(live.adapters.filter(\.isPowered).count),
                "devices": Int64(live.links.count),
                "ready": Int64(live.links.filter(\.isOnline).count),
                "seq": history.newestSeq,
                "undelivered": Int64(history.status.undelivered),
                "dropped": Int64(clamping: dependencies.gateway.intake.dropped.value),
            ]
            for (name, number) in numbers {
                writer.key(name)
                writer.integer(number)
            }
            writer.key("outputs")
            writer.array(dependencies.outputs) { $0.output(history.summary(of: $1)) }
            writer.endObject()
        }
    }
}
