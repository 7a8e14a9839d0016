import GattherdDBus

/// The methods of BlueZ's interfaces with their input and output signatures.
///
/// Like GDBus, treats a call with other arguments as a call of an unknown method.
enum MethodTable {
    typealias Method = (name: String, input: String, output: String)

    static let methods: [String: [Method]] = [
        InterfaceName.adapter: [
            ("StartDiscovery", "", ""), ("StopDiscovery", "", ""), ("SetDiscoveryFilter", "a{sv}", ""),
            ("GetDiscoveryFilters", "", "as"), ("RemoveDevice", "o", ""),
        ],
        InterfaceName.device: [
            ("Connect", "", ""), ("Disconnect", "", ""), ("Pair", "", ""), ("CancelPairing", "", ""),
        ],
        InterfaceName.characteristic: [
            ("ReadValue", "a{sv}", "ay"), ("WriteValue", "aya{sv}", ""), ("AcquireWrite", "a{sv}", "hq"),
            ("AcquireNotify", "a{sv}", "hq"), ("StartNotify", "", ""), ("StopNotify", "", ""),
        ],
        InterfaceName.descriptor: [("ReadValue", "a{sv}", "ay"), ("WriteValue", "aya{sv}", "")],
        InterfaceName.agentManager: [
            ("RegisterAgent", "os", ""), ("UnregisterAgent", "o", ""), ("RequestDefaultAgent", "o", ""),
        ],
        InterfaceName.properties: [("Get", "ss", "v"), ("Set", "ssv", ""), ("GetAll", "s", "a{sv}")],
        InterfaceName.objectManager: [("GetManagedObjects", "", "a{oa{sa{sv}}}")],
        InterfaceName.introspectable: [("Introspect", "", "s")],
    ]

    static func knows(_ call: MethodCall) -> Bool {
        let input = call.arguments.map(\.signature).joined()
        return methods[call.interface]?.contains { $0.name == call.member && $0.input == input } ?? false
    }

    /// The introspection data of an interface's methods.
    static func introspection(of interface: String) -> String {
        (methods[interface] ?? []).map { method in
            "<method name=\"\(method.name)\">" + arguments(method.input, "in") + arguments(method.output, "out")
                + "</method>"
        }.joined()
    }

    private static func arguments(_ signature: String, _ direction: String) -> String {
        types(of: signature).map { "<arg type=\"\($0)\" direction=\"\(direction)\"/>" }.joined()
    }

    /// The complete types in a signature of this table.
    private static func types(of signature: String) -> [Substring] {
        var types: [Substring] = []
        var start = signature.startIndex
        var depth = 0
        for (index, letter) in zip(signature.indices, signature) {
            if letter == "{" { depth += 1 }
            if letter == "}" { depth -= 1 }
            guard depth == 0, letter != "a" else { continue }
            let end = signature.index(after: index)
            types.append(signature[start..<end])
            start = end
        }
        return types
    }
}
