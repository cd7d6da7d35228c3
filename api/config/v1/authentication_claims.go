package v1

// TokenClaimMappings says how claims of a token become a user.
type TokenClaimMappings struct {
	// username says how the name of the user is made.
	//
	// +required
	Username UsernameClaimMapping `json:"username"`

	// groups says how the groups of the user are made. Unset means none.
	//
	// +optional
	Groups PrefixedClaimMapping `json:"groups,omitzero"`

	// uid says how the UID of the user is made. Unset means by the claim sub.
	//
	// +optional
	UID *TokenClaimOrExpressionMapping `json:"uid,omitempty"`

	// extra says how extra attributes of the user are made.
	//
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=32
	Extra []ExtraMapping `json:"extra,omitempty"`
}

// TokenClaimOrExpressionMapping takes a value from a claim, or from a CEL expression over the claims.
//
// +kubebuilder:validation:XValidation:rule="has(self.claim) ? !has(self.expression) : has(self.expression)",message="exactly one of claim and expression is required"
type TokenClaimOrExpressionMapping struct {
	// claim is the name of the claim.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Claim string `json:"claim,omitempty"`

	// expression is a CEL expression that gives a string; it knows the variable claims.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression,omitempty"`
}

// ExtraMapping makes one extra attribute of a user.
type ExtraMapping struct {
	// key names the attribute: a domain in lower case, '/' and a path. The domains kubernetes.io, k8s.io and
	// openshift.io and those below them are reserved.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=510
	// +kubebuilder:validation:XValidation:rule="self.contains('/')",message="key must hold a '/' between domain and path"
	// +kubebuilder:validation:XValidation:rule="self.split('/', 2)[0].size() <= 253",message="the domain in key cannot be longer than 253 characters"
	// +kubebuilder:validation:XValidation:rule="self.split('/', 2)[0].matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$')",message="the domain in key must be a DNS name in lower case"
	// +kubebuilder:validation:XValidation:rule="self.split('/', 2)[0] != 'kubernetes.io'",message="the domain kubernetes.io in key is reserved"
	// +kubebuilder:validation:XValidation:rule="!self.split('/', 2)[0].endsWith('.kubernetes.io')",message="domains below kubernetes.io in key are reserved"
	// +kubebuilder:validation:XValidation:rule="self.split('/', 2)[0] != 'k8s.io'",message="the domain k8s.io in key is reserved"
	// +kubebuilder:validation:XValidation:rule="!self.split('/', 2)[0].endsWith('.k8s.io')",message="domains below k8s.io in key are reserved"
	// +kubebuilder:validation:XValidation:rule="self.split('/', 2)[0] != 'openshift.io'",message="the domain openshift.io in key is reserved"
	// +kubebuilder:validation:XValidation:rule="!self.split('/', 2)[0].endsWith('.openshift.io')",message="domains below openshift.io in key are reserved"
	// +kubebuilder:validation:XValidation:rule=`size(self.split('/', 2)) == 2 && self.split('/', 2)[1].matches('[A-Za-z0-9/\\-._~%!$&\'()*+;=:]+')`,message="the path in key must hold a letter, a digit or one of /-._~%!$&'()*+;=:"
	// +kubebuilder:validation:XValidation:rule="size(self.split('/', 2)) == 2 && self.split('/', 2)[1].size() <= 256",message="the path in key cannot be longer than 256 characters"
	Key string `json:"key"`

	// valueExpression is a CEL expression that gives a string or a list of strings; it knows the variable claims. An empty
	// value omits the attribute.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ValueExpression string `json:"valueExpression"`
}

// UsernamePrefixPolicy says what goes before the name of a user.
//
// +kubebuilder:validation:Enum="";NoPrefix;Prefix
type UsernamePrefixPolicy string

const (
	// NoOpinion puts the issuer and '#' before every claim except email.
	NoOpinion UsernamePrefixPolicy = ""
	// NoPrefix puts nothing before it.
	NoPrefix UsernamePrefixPolicy = "NoPrefix"
	// Prefix puts the prefix before it.
	Prefix UsernamePrefixPolicy = "Prefix"
)

// UsernameClaimMapping says how the name of a user is made.
//
// +kubebuilder:validation:XValidation:rule="has(self.prefixPolicy) && self.prefixPolicy == 'Prefix' ? (has(self.prefix) && size(self.prefix.prefixString) > 0) : !has(self.prefix)",message="prefix is required when prefixPolicy is Prefix, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="has(self.claim) ? !has(self.expression) : has(self.expression)",message="exactly one of claim and expression is required"
// +kubebuilder:validation:XValidation:rule="has(self.expression) && size(self.expression) > 0 ? !has(self.prefixPolicy) || self.prefixPolicy != 'Prefix' : true",message="prefixPolicy cannot be Prefix when expression is set"
type UsernameClaimMapping struct {
	// claim is the name of the claim.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Claim string `json:"claim,omitempty"`

	// expression is a CEL expression that gives a string; it knows the variable claims.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression,omitempty"`

	// prefixPolicy says what goes before the value.
	//
	// +optional
	PrefixPolicy UsernamePrefixPolicy `json:"prefixPolicy,omitempty"`

	// prefix goes before the value when prefixPolicy is Prefix.
	//
	// +optional
	Prefix *UsernamePrefix `json:"prefix,omitempty"`
}

// UsernamePrefix goes before the name of a user.
type UsernamePrefix struct {
	// prefixString is the text.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	PrefixString string `json:"prefixString"`
}

// PrefixedClaimMapping takes values from a claim, or from a CEL expression over the claims, and puts a prefix before them.
//
// +kubebuilder:validation:XValidation:rule="has(self.claim) && size(self.claim) > 0 ? !has(self.expression) : true",message="expression is forbidden when claim is set and not empty"
// +kubebuilder:validation:XValidation:rule="has(self.expression) && size(self.expression) > 0 ? !has(self.prefix) || size(self.prefix) == 0 : true",message="prefix is forbidden when expression is set"
type PrefixedClaimMapping struct {
	// claim is the name of the claim.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Claim string `json:"claim,omitempty"`

	// expression is a CEL expression that gives a string or a list of strings; it knows the variable claims.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression,omitempty"`

	// prefix goes before every value.
	//
	// +optional
	Prefix string `json:"prefix,omitempty"`
}

// TokenValidationRuleType names a kind of rule over claims.
//
// +kubebuilder:validation:Enum=RequiredClaim;CEL
type TokenValidationRuleType string

const (
	// TokenValidationRuleTypeRequiredClaim demands a value of a claim.
	TokenValidationRuleTypeRequiredClaim TokenValidationRuleType = "RequiredClaim"
	// TokenValidationRuleTypeCEL demands that an expression is true.
	TokenValidationRuleTypeCEL TokenValidationRuleType = "CEL"
)

// TokenClaimValidationRule is a union over type.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'RequiredClaim' ? has(self.requiredClaim) : !has(self.requiredClaim)",message="requiredClaim is required when type is RequiredClaim, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="self.type == 'CEL' ? has(self.cel) : !has(self.cel)",message="cel is required when type is CEL, and forbidden otherwise"
type TokenClaimValidationRule struct {
	// type names the kind of rule.
	//
	// +required
	Type TokenValidationRuleType `json:"type"`

	// requiredClaim says what a claim must be when type is RequiredClaim.
	//
	// +optional
	RequiredClaim *TokenRequiredClaim `json:"requiredClaim,omitempty"`

	// cel is what must be true when type is CEL.
	//
	// +optional
	CEL *TokenClaimValidationCELRule `json:"cel,omitempty"`
}

// TokenRequiredClaim says what a claim must be.
type TokenRequiredClaim struct {
	// claim is the name of the claim.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Claim string `json:"claim"`

	// requiredValue is what it must be.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	RequiredValue string `json:"requiredValue"`
}

// TokenClaimValidationCELRule is what must be true of claims.
type TokenClaimValidationCELRule struct {
	// expression is a CEL expression that gives a boolean; it knows the variable claims.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression"`

	// message says what is wrong when it is false.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message"`
}

// TokenUserValidationRule is what must be true of a user.
type TokenUserValidationRule struct {
	// expression is a CEL expression that gives a boolean; it knows the variable user.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression"`

	// message says what is wrong when it is false.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message"`
}
