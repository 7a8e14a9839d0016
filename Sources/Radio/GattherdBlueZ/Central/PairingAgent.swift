import GattherdBluetooth
import GattherdDBus

/// What bluetoothd asks for a peripheral that pairs: one call of `org.bluez.Agent1`.
struct AgentCall {
    let question: PairingRequest
    /// The peripheral's object.
    let path: String

    /// `nil` for what is no question about a peripheral.
    init?(_ member: String, _ arguments: [DBusValue]) {
        guard let question = Self.question(member), let path = arguments.first?.string else { return nil }
        self.question = question
        self.path = path
    }

    private static func question(_ member: String) -> PairingRequest? {
        switch member {
        case "RequestAuthorization": .authorization
        case "RequestConfirmation": .confirmation
        case "RequestPasskey": .passkey
        case "RequestPinCode": .pinCode
        case "DisplayPasskey", "DisplayPinCode": .display
        case "AuthorizeService": .service
        default: nil
        }
    }

    /// The values to reply with; an error means no.
    func reply(_ answer: PairingResponse) throws(DBusError) -> [DBusValue] {
        switch answer {
        case .accepted: return []
        case .passkey(let passkey):
            return question == .pinCode ? [.string(passkey.digits)] : [.uint32(passkey.value)]
        case .rejected(let reason): throw DBusError(name: "org.bluez.Error.Rejected", message: reason)
        }
    }
}

extension DBusConnection {
    /// Where our agents are, each on its own connection.
    static let agentPath = "/gattherd/agent"

    /// Exports an agent that lets `decide` answer bluetoothd, and nobody else; on the loop.
    nonisolated func exportAgent(for owner: String, _ decide: @escaping (AgentCall) -> PairingResponse) {
        export(Self.agentPath) { call in
            // What cannot be said is not answered; bluetoothd gives up after a minute.
            try? Self.answer(call, for: owner, decide)
        }
    }

    private static func answer(
        _ call: DBusMethodCall,
        for owner: String,
        _ decide: (AgentCall) -> PairingResponse
    ) throws(DBusError) {
        guard call.sender == owner else {
            let name = "org.freedesktop.DBus.Error.AccessDenied"
            return try call.fail(DBusError(name: name, message: "only bluetoothd may ask"))
        }
        if ["Release", "Cancel"].contains(call.member) { return try call.reply() }
        guard let question = AgentCall(call.member, try call.arguments()) else { return try call.failUnknownMethod() }
        let values: [DBusValue]
        do throws(DBusError) { values = try question.reply(decide(question)) } catch { return try call.fail(error) }
        try call.reply(values)
    }
}
