import GattherdBluetooth
import GattherdDaemon
import GattherdDelivery
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdSync

/// Requests that come by MQTT, once there is a gateway to carry them out.
final class RequestRouter: Sendable {
    private struct House: Sendable {
        let gateway: Gateway
        let delivery: MQTTDelivery?
        let started: Timestamp
    }

    private let house = Locked<House?>(nil)
    private let history: ReadingHistory
    private let desk: HistoryService

    init(history: ReadingHistory, path: String) {
        self.history = history
        desk = HistoryService(path: path, maximum: 2)
    }

    func open(_ gateway: Gateway, _ delivery: MQTTDelivery?, started: Timestamp) {
        house.withLock { $0 = House(gateway: gateway, delivery: delivery, started: started) }
    }

    func set(_ request: ControlRequest) async -> Result<ControlValue, ControlError> {
        guard let house = house.withLock({ $0 }) else { return .failure(.notReady(device: request.device)) }
        return await house.gateway.herd.controls.set(request)
    }

    func answer(_ request: BridgeRequest) async -> Result<BridgeReply, BridgeFailure> {
        guard let house = house.withLock({ $0 }) else { return .failure(BridgeFailure("not started yet")) }
        do throws(ControlError) {
            switch request {
            case .connect(let device): try await house.gateway.herd.connect(device)
            case .disconnect(let device): try await house.gateway.herd.disconnect(device)
            case .history(let request): return await desk.answer(request)
            case .health: return .success(BridgeReply(health(house)))
            }
            return .success(BridgeReply(Array("{}".utf8)))
        } catch {
            return .failure(BridgeFailure(error.description))
        }
    }

    /// Keeps what happened to a part of the gateway; nothing happens before there is one.
    ///
    /// An event with a member `device` is that device's, so that `why` tells of it.
    func record(kind: String, _ members: KeyValuePairs<String, SampleValue?>) {
        var device: String?
        if case .text(let name)?? = members.first(where: { $0.key == "device" })?.value { device = name }
        house.withLock { $0 }?.gateway.recorder.record(device: device, kind: kind, members)
    }

    private func health(_ house: House) -> [UInt8] {
        let board = house.gateway.herd.board
        return JSONWriter.octets { writer in
            writer.beginObject()
            writer.key("version")
            writer.string(GattherdVersion.current)
            writer.key("started")
            writer.timestamp(house.started)
            let numbers: KeyValuePairs = [
                "adapters": Int64(board.adapters.filter(\.isPowered).count),
                "devices": Int64(board.statuses.count),
                "ready": Int64(board.statuses.filter(\.isOnline).count),
                "seq": history.newestSeq,
                "backlog": house.delivery?.status.backlog ?? 0,
                "undelivered": Int64(history.status.undelivered),
                "dropped": Int64(clamping: house.gateway.intake.dropped.value),
            ]
            for (name, number) in numbers {
                writer.key(name)
                writer.integer(number)
            }
            writer.endObject()
        }
    }
}
