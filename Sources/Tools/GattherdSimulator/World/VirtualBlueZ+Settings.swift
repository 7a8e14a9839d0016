import GattherdDBus

// `org.freedesktop.DBus.Properties`: what clients read and set.
extension VirtualBlueZ {
    mutating func answerProperties(_ call: MethodCall, _ node: Node) {
        let texts = call.arguments.map { $0.string ?? "" }
        guard let interface = interfaces(of: node).first(where: { $0.name == texts.first }) else {
            return fail(call, .noSuchInterface(texts.first ?? ""))
        }
        guard call.member != "GetAll" else { return reply(call, .properties(interface.properties)) }
        let property = interface.properties.first { $0.name == texts[1] }
        if call.member == "Set" {
            set(call, node, texts[1], from: property?.value, to: call.arguments[2].unwrapped)
        } else if let property {
            reply(call, .variant(property.value))
        } else {
            fail(call, .noSuchProperty(texts[1]))
        }
    }

    private mutating func set(
        _ call: MethodCall,
        _ node: Node,
        _ name: String,
        from old: DBusValue?,
        to new: DBusValue
    ) {
        guard let old else { return fail(call, .unknownProperty(name)) }
        guard isWritable(node, name) else { return fail(call, .readOnly(name)) }
        guard old.signature == new.signature else { return fail(call, .invalidSignature(name)) }
        switch node {
        case .adapter(let index): setAdapter(index, Property(name, new), isNew: old != new)
        case .device(let key): setDevice(key, Property(name, new), isNew: old != new)
        default: break
        }
        reply(call)
    }

    private func isWritable(_ node: Node, _ name: String) -> Bool {
        switch node {
        case .adapter:
            ["Powered", "Discoverable", "DiscoverableTimeout", "Pairable", "PairableTimeout", "Alias"].contains(name)
        case .device: ["Trusted", "Blocked", "Alias"].contains(name)
        default: false
        }
    }

    private mutating func setAdapter(_ index: Int, _ property: Property, isNew: Bool) {
        switch (property.name, property.value) {
        case ("Powered", .boolean(let isOn)): return setPower(index, isOn)
        case ("Pairable", .boolean(let isPairable)): adapters[index].isPairable = isPairable
        case ("Alias", .string(let alias)): adapters[index].alias = alias.isEmpty ? nil : alias
        default: return
        }
        if isNew { changed(adapters[index].path, InterfaceName.adapter, property) }
    }

    private mutating func setDevice(_ key: DeviceKey, _ property: Property, isNew: Bool) {
        guard isNew else { return }
        changed(devicePath(key), InterfaceName.device, property)
        switch (property.name, property.value) {
        case ("Trusted", .boolean(let isTrusted)):
            devices[key]?.isTrusted = isTrusted
            armExpiry(key)
        case ("Blocked", .boolean(let isBlocked)):
            devices[key]?.isBlocked = isBlocked
            if isBlocked { linkDown(key, .blocked) } else { proceed(key) }
        case ("Alias", .string(let alias)): devices[key]?.alias = alias.isEmpty ? nil : alias
        default: break
        }
    }
}
