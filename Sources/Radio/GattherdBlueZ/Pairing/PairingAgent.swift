import GattherdBluetooth
import GattherdDBus

/// One call of `org.bluez.Agent1`: a request of a peripheral that pairs.
struct AgentCall {
    let request: PairingRequest
    /// The path of the peripheral's object.
    let path: String

    /// Returns `nil` for a call that is not a request of a peripheral.
    init?(_ member: String, _ arguments: [DBusValue]) {
        guard let request = Self.request(member), let path = arguments.first?.string else { return nil }
        self.request = request
        self.path = path
    }

    private static func request(_ member: String) -> PairingRequest? {
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

    /// The values of the reply to bluetoothd; an error rejects the request.
    func reply(_ response: PairingResponse) throws(DBusError) -> [DBusValue] {
        switch response {
        case .accepted: return []
        case .passkey(let passkey):
            return request == .pinCode ? [.string(passkey.digits)] : [.uint32(passkey.value)]
        case .rejected(let reason): throw DBusError(name: "org.bluez.Error.Rejected", message: reason)
        }
    }
}

extension DBusConnection {
    /// The path of our agents, each on its own connection.
    static let agentPath = "/gattherd/agent"

    /// Exports an agent whose calls by bluetoothd are answered by `respond`; on the Bluetooth thread only.
    nonisolated func exportAgent(for owner: String, _ respond: @escaping (AgentCall) -> PairingResponse) {
        export(Self.agentPath, for: owner) { (call) throws(DBusError) in
            if ["Release", "Cancel"].contains(call.member) { return try call.reply() }
            guard let request = AgentCall(call.member, try call.arguments()) else {
                return try call.failUnknownMethod()
            }
            let values: [DBusValue]
            do throws(DBusError) { values = try request.reply(respond(request)) } catch { return try call.fail(error) }
            try call.reply(values)
        }
    }
}
