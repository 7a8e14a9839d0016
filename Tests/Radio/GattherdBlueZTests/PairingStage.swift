import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import GattherdSync
import Testing

/// A stage whose bluetoothd knows agents.
struct PairingStage {
    struct Agent: Equatable, Sendable {
        let client: String
        let path: String
        let capability: String
    }

    let stage: Stage
    let agents = LatestValue<[Agent]>([])
    let delegate = AcceptingDelegate()

    static func run(_ body: (PairingStage) async throws -> Void) async throws {
        try await Stage.run { stage in
            let bench = PairingStage(stage: stage)
            await bench.teachAgents(stage.fake)
            await stage.central.answerPairing(with: bench.delegate)
            try await body(bench)
        }
    }

    func teachAgents(_ fake: FakeBlueZ) async {
        await fake.on("RegisterAgent") { [agents] _, call in
            let arguments = try call.arguments()
            let agent = Agent(
                client: call.sender,
                path: arguments.first?.string ?? "",
                capability: arguments.last?.string ?? ""
            )
            agents.update { $0.append(agent) }
            try call.reply()
        }
        await fake.on("RequestDefaultAgent") { _, call in try call.reply() }
    }

    /// Calls an agent, the newest by default.
    func ask(
        _ member: String,
        _ more: DBusValue...,
        device: String = FakeBlueZ.device,
        of agent: Int? = nil
    ) async throws -> Result<[DBusValue], DBusError> {
        let agents = agents.state
        let agent = try #require(agent.map { agents[$0] } ?? agents.last)
        return await stage.fake.ask(agent.client, agent.path, member, [.objectPath(device)] + more)
    }
}

/// A delegate that responds like Just Works and records the requests.
final class AcceptingDelegate: PairingDelegate {
    let asked = Locked<[PairingRequest]>([])

    func answer(_ question: PairingRequest, from peripheral: PeripheralID) -> PairingResponse {
        asked.withLock { $0.append(question) }
        return PairingMethod.justWorks.answer(to: question)
    }
}

extension FakeBlueZ {
    func ask(
        _ client: String,
        _ path: String,
        _ member: String,
        _ arguments: [DBusValue]
    ) async -> Result<[DBusValue], DBusError> {
        do throws(DBusError) {
            let agent = "org.bluez.Agent1"
            return .success(try await connection.call(client, path, agent, member, arguments, timeout: .seconds(20)))
        } catch {
            return .failure(error)
        }
    }
}

extension Result where Failure == DBusError {
    var errorName: String? {
        if case .failure(let error) = self { error.name } else { nil }
    }
}

extension Stage {
    static let passkey = Passkey("000042").unsafelyKnown
}
