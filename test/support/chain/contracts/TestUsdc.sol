// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

// A stand-in for USDC on a local chain, planted at USDC's own address by anvil_setCode: no constructor, no immutables, so
// that its runtime code works wherever it is put. It has what x402's `exact` scheme touches (EIP-3009 and a few views; a
// payer that is a contract is asked itself about its signature, ERC-1271), and a mint that anybody may call. `setMischief` makes it emit its events in ways an honest token never does.
contract TestUsdc {
    event Transfer(address indexed from, address indexed to, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);
    event Noise(uint256 value);

    string public constant name = "USDC";
    string public constant symbol = "USDC";
    string public constant version = "2";
    uint8 public constant decimals = 6;

    bytes32 private constant DOMAIN =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant TRANSFER = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 private constant CANCEL = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");

    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(bytes32 => bool)) public authorizationState;

    // 0: honest. 1: Transfer first, AuthorizationUsed after it. 2: another event between the two. 3: no Transfer at all.
    uint256 public mischief;

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function setMischief(uint256 kind) external {
        mischief = kind;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        emit Transfer(msg.sender, to, value);
        return true;
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        pay(from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v));
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external {
        pay(from, to, value, validAfter, validBefore, nonce, signature);
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external {
        require(!authorizationState[authorizer][nonce], "FiatTokenV2: authorization is used or canceled");
        check(authorizer, keccak256(abi.encode(CANCEL, authorizer, nonce)), abi.encodePacked(r, s, v));
        authorizationState[authorizer][nonce] = true;
        emit AuthorizationCanceled(authorizer, nonce);
    }

    function pay(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) private {
        require(block.timestamp > validAfter, "FiatTokenV2: authorization is not yet valid");
        require(block.timestamp < validBefore, "FiatTokenV2: authorization is expired");
        require(!authorizationState[from][nonce], "FiatTokenV2: authorization is used or canceled");
        check(from, keccak256(abi.encode(TRANSFER, from, to, value, validAfter, validBefore, nonce)), signature);
        authorizationState[from][nonce] = true;
        move(from, to, value);
        if (mischief == 1) emit Transfer(from, to, value);
        emit AuthorizationUsed(from, nonce);
        if (mischief == 2) emit Noise(value);
        if (mischief == 0 || mischief == 2) emit Transfer(from, to, value);
    }

    function check(address signer, bytes32 structHash, bytes memory signature) private view {
        bytes32 domain =
            keccak256(abi.encode(DOMAIN, keccak256(bytes(name)), keccak256(bytes(version)), block.chainid, address(this)));
        bytes32 digest = keccak256(abi.encodePacked("\x19\x01", domain, structHash));
        if (signer.code.length > 0) {
            (bool success, bytes memory said) =
                signer.staticcall(abi.encodeWithSignature("isValidSignature(bytes32,bytes)", digest, signature));
            require(success && said.length >= 32 && bytes4(said) == 0x1626ba7e, "FiatTokenV2: invalid signature");
            return;
        }
        require(signature.length == 65, "FiatTokenV2: invalid signature");
        (bytes32 r, bytes32 s, uint8 v) = (bytes32(0), bytes32(0), uint8(signature[64]));
        assembly {
            r := mload(add(signature, 32))
            s := mload(add(signature, 64))
        }
        address found = ecrecover(digest, v < 27 ? v + 27 : v, r, s);
        require(found != address(0) && found == signer, "FiatTokenV2: invalid signature");
    }

    function move(address from, address to, uint256 value) private {
        require(balanceOf[from] >= value, "ERC20: transfer amount exceeds balance");
        unchecked {
            balanceOf[from] -= value;
            balanceOf[to] += value;
        }
    }
}
